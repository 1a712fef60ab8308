// SPDX-License-Identifier: Apache-2.0
#include "cli/tls_trouble.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "rules/printable.hpp"

namespace tidegate::cli {
namespace {

using Cause = net::TlsSession::Cause;

/// Certificates of large sites have a hundred.
constexpr std::size_t kMostNames = 5;

std::string ListOf(const std::vector<std::string>& names) {
  if (names.empty()) return "nobody";
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostNames) {
    list += " and " + std::to_string(names.size() - kMostNames) + " more";
  }
  return list;
}

/// What to do comes first: `top` has one line for it, and cuts that where the screen ends.
std::string Untrusted(const net::TlsSession& session, const Keyring& keyring) {
  // The problem ends in OpenSSL's reason, as "self-signed certificate".
  const std::string& problem = session.problem();
  const std::size_t colon = problem.rfind(": ");
  const std::string reason = colon == std::string::npos ? problem : problem.substr(colon + 2);
  return "its certificate is not trusted: " +
         (keyring.ca_file.empty()
              ? "name the authority that signed it with --ca-file"
              : "no authority in " + Printable(keyring.ca_file) + " has signed it") +
         " (" + reason + ")";
}

}  // namespace

Error TroubleOf(const net::TlsSession& session, const ServerAddress& address,
                const Keyring& keyring, const Patience& patience) {
  const auto error = [&](ErrorCode code, const std::string& what) {
    return Error{code, address.Told() + ": " + what};
  };
  if (session.plain()) {
    return error(ErrorCode::kBadConfig,
                 "it does not speak TLS: say " + patience.option + " http://" + address.Text());
  }
  switch (session.cause()) {
    case Cause::kUnknownIssuer:
      return error(ErrorCode::kNetwork, Untrusted(session, keyring));
    case Cause::kOtherName:
      return error(ErrorCode::kNetwork, "its certificate is not for " + address.CertifiedName() +
                                            " but for " + ListOf(session.PeerNames()) +
                                            ": ask by a name that it has with " + patience.option);
    case Cause::kOutOfDate:
      return error(ErrorCode::kNetwork,
                   session.problem() + "; the server needs a new one, or a clock is wrong");
    case Cause::kWantsCertificate:
      return error(ErrorCode::kBadConfig,
                   "it wants a certificate of its callers: name yours with --cert-file and "
                   "--key-file");
    case Cause::kRefusesCertificate:
      return error(ErrorCode::kBadConfig,
                   "it does not accept the certificate of --cert-file (" + session.problem() + ")");
    case Cause::kOther:
      break;
  }
  return error(ErrorCode::kNetwork, session.problem());
}

Error WantsTls(const ServerAddress& address, const Patience& patience) {
  return {ErrorCode::kBadConfig,
          address.Text() + ": it wants TLS: say " + patience.option + " https://" + address.Text()};
}

}  // namespace tidegate::cli

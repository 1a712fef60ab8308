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

std::string Untrusted(const net::TlsSession& session, const Keyring& keyring) {
  // `problem` ends in OpenSSL's reason, as "self-signed certificate".
  const std::string why = session.problem();
  if (!keyring.ca_file.empty()) {
    return why + "; none of the authorities in " + Printable(keyring.ca_file) + " has signed it";
  }
  return why +
         "; the system's authorities do not vouch for it: if your own does, name the file of its "
         "certificate with --ca-file";
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

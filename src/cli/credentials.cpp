// SPDX-License-Identifier: Apache-2.0
#include "cli/credentials.hpp"

#include <algorithm>
#include <cstdlib>
#include <expected>
#include <string_view>

#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "config/files.hpp"
#include "config/pem.hpp"

namespace tidegate::cli {
namespace {

/// The longest token that access.tokens accepts.
constexpr std::size_t kMaxTokenBytes = 128;
/// The largest PEM file that is read. The system's file with all authorities has 220 KB.
constexpr std::size_t kMaxPemBytes = 4u << 20;

std::string Named(const std::string& file, const std::string& option) {
  return "the file " + Printable(file) + " of " + option;
}

/// Reads the file, of a longer one `most` + 1 bytes.
Result<std::string> Read(const std::string& file, const std::string& option, std::size_t most) {
  auto text = ReadFileUpTo(file, most);
  if (text) return *std::move(text);
  return Failure(ErrorCode::kBadConfig, Named(file, option) + " cannot be read: " + text.error());
}

Result<std::string> ReadPem(const std::string& file, const std::string& option) {
  auto pem = Read(file, option, kMaxPemBytes);
  if (pem && pem->size() > kMaxPemBytes) {
    return Failure(ErrorCode::kBadConfig, Named(file, option) + " is larger than 4 MiB");
  }
  return pem;
}

Result<std::string> ReadCertificates(const std::string& file, const std::string& option) {
  auto pem = ReadPem(file, option);
  if (!pem || CheckCertificates(*pem)) return pem;
  return Failure(ErrorCode::kBadConfig, Named(file, option) +
                                            " must hold certificates in PEM form, which begin with "
                                            "`-----BEGIN CERTIFICATE-----`");
}

Result<std::string> CheckToken(std::string_view text, const std::string& where) {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlank)));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (text.empty()) return Failure(ErrorCode::kBadConfig, where + " holds no token");
  if (text.size() > kMaxTokenBytes ||
      !std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; })) {
    return Failure(ErrorCode::kBadConfig,
                   where +
                       " must hold one token and nothing else: at most 128 printable ASCII "
                       "characters without spaces");
  }
  return std::string(text);
}

}  // namespace

Result<std::string> ReadToken(const std::string& file) {
  if (file.empty()) {
    const char* const variable = std::getenv("TIDEGATE_TOKEN");
    if (variable == nullptr || *variable == '\0') return std::string{};
    return CheckToken(variable, "TIDEGATE_TOKEN");
  }
  auto text = Read(file, "--token-file", kMaxTokenBytes * 4);
  if (!text) return text;
  return CheckToken(*text, "the file " + Printable(file));
}

Result<TlsCredentials> TlsCredentials::Load(const TlsOptions& files) {
  if (!files.key.empty() && files.certificate.empty()) {
    return Failure(ErrorCode::kBadConfig,
                   "--key-file needs --cert-file: name the certificate of the key");
  }
  const char* const variable = std::getenv("TIDEGATE_CA_FILE");
  const bool by_variable = files.ca.empty() && variable != nullptr;
  TlsCredentials credentials{.ca_file = by_variable ? variable : files.ca};
  TlsClientSpec spec;
  if (!credentials.ca_file.empty()) {
    auto pem =
        ReadCertificates(credentials.ca_file, by_variable ? "TIDEGATE_CA_FILE" : "--ca-file");
    if (!pem) return std::unexpected(std::move(pem.error()));
    spec.ca_pem = std::move(*pem);
  }
  if (!files.certificate.empty()) {
    auto pem = ReadCertificates(files.certificate, "--cert-file");
    if (!pem) return std::unexpected(std::move(pem.error()));
    spec.certificate_pem = std::move(*pem);
    const bool apart = !files.key.empty();
    auto key = apart ? ReadPem(files.key, "--key-file") : spec.certificate_pem;
    if (!key) return std::unexpected(std::move(key.error()));
    if (!CheckKey(spec.certificate_pem, *key)) {
      const std::string what =
          " the private key that fits the certificate, in PEM form and without a passphrase";
      return Failure(ErrorCode::kBadConfig,
                     apart ? Named(files.key, "--key-file") + " does not hold" + what
                           : Named(files.certificate, "--cert-file") +
                                 " does not hold, besides the certificate," + what +
                                 "; if the key is in another file, name that file with --key-file");
    }
    spec.key_pem = std::move(*key);
  }
  auto client = net::TlsClient::Make(spec);
  if (!client) return std::unexpected(std::move(client.error()));
  credentials.client = std::move(*client);
  return credentials;
}

}  // namespace tidegate::cli

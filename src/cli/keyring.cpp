// SPDX-License-Identifier: Apache-2.0
#include "cli/keyring.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/refuse.hpp"
#include "net/descriptor.hpp"
#include "rules/pem.hpp"
#include "rules/printable.hpp"

namespace tidegate::cli {
namespace {

/// The system's authorities, all in one file, are 220 KB.
constexpr std::size_t kMostPemBytes = 4u << 20;

std::string Named(const std::string& file, const std::string& option) {
  return "the file " + Printable(file) + " of " + option;
}

Result<std::string> Read(const std::string& file, const std::string& option) {
  const net::Descriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> chunk;
  for (ssize_t got = in ? 1 : -1; got != 0;) {
    if (in) got = read(in.get(), chunk.data(), chunk.size());
    if (got < 0 && in && errno == EINTR) continue;
    if (got < 0) {
      return Refuse(ErrorCode::kBadConfig, Named(file, option) + " cannot be read: " +
                                               std::generic_category().message(errno));
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostPemBytes)
      return Refuse(ErrorCode::kBadConfig, Named(file, option) + " is larger than 4 MiB");
  }
  return text;
}

Result<std::string> ReadCertificates(const std::string& file, const std::string& option) {
  auto pem = Read(file, option);
  if (pem && !CountCertificates(*pem)) {
    return Refuse(ErrorCode::kBadConfig,
                  Named(file, option) +
                      " must hold certificates in PEM form, which begin with `-----BEGIN "
                      "CERTIFICATE-----`");
  }
  return pem;
}

}  // namespace

Result<Keyring> Keyring::Load(const TlsFiles& files) {
  if (!files.key.empty() && files.certificate.empty()) {
    return Refuse(ErrorCode::kBadConfig,
                  "--key-file is the key of a certificate: name that with --cert-file");
  }
  Keyring keyring;
  keyring.ca_file = files.ca;
  std::string ca_option = "--ca-file";
  if (const char* const variable = std::getenv("TIDEGATE_CA_FILE");
      files.ca.empty() && variable != nullptr) {
    keyring.ca_file = variable;
    ca_option = "TIDEGATE_CA_FILE";
  }
  net::TlsClient::Options options;
  if (!keyring.ca_file.empty()) {
    auto pem = ReadCertificates(keyring.ca_file, ca_option);
    if (!pem) return std::unexpected(std::move(pem.error()));
    options.ca_pem = std::move(*pem);
  }
  if (!files.certificate.empty()) {
    auto pem = ReadCertificates(files.certificate, "--cert-file");
    if (!pem) return std::unexpected(std::move(pem.error()));
    options.certificate_pem = std::move(*pem);
    const bool apart = !files.key.empty();
    auto key = apart ? Read(files.key, "--key-file") : options.certificate_pem;
    if (!key) return std::unexpected(std::move(key.error()));
    if (!CheckKey(options.certificate_pem, *key)) {
      return Refuse(
          ErrorCode::kBadConfig,
          Named(apart ? files.key : files.certificate, apart ? "--key-file" : "--cert-file") +
              (apart ? " does not hold" : " does not hold, beside the certificate,") +
              " the private key that fits the certificate, in PEM form and without a "
              "passphrase" +
              (apart ? "" : "; if that is in another file, name it with --key-file"));
    }
    options.key_pem = std::move(*key);
  }
  auto client = net::TlsClient::Make(options);
  if (!client) return std::unexpected(std::move(client.error()));
  keyring.client = std::move(*client);
  return keyring;
}

}  // namespace tidegate::cli

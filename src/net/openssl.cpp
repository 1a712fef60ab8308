// SPDX-License-Identifier: Apache-2.0
#include "net/openssl.hpp"

#include <algorithm>
#include <array>
#include <expected>

namespace tidegate::openssl {

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

std::unexpected<Error> Bad(std::string problem) {
  return std::unexpected(Error{ErrorCode::kBadConfig, std::move(problem) + ": " + LastError()});
}

Context NewContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  if (context == nullptr) return context;
  (void)SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  (void)SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                            SSL_MODE_RELEASE_BUFFERS);
  return context;
}

Result<void> Trust(SSL_CTX* context, const std::string& pem) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  const std::vector<Certificate> authorities = ReadCertificates(pem);
  if (authorities.empty()) return Bad("there is no CA certificate in PEM form");
  for (const Certificate& one : authorities) {
    if (X509_STORE_add_cert(store, one.get()) != 1) return Bad("a CA certificate cannot be used");
  }
  ERR_clear_error();
  return {};
}

Result<void> Present(SSL_CTX* context, const std::string& certificate_pem,
                     const std::string& key_pem) {
  const std::vector<Certificate> chain = ReadCertificates(certificate_pem);
  if (chain.empty() || SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
    return Bad("`certificate` cannot be used");
  }
  // The chain belongs to this certificate: a context may have one certificate for each kind of key.
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return Bad("the certificate chain cannot be used");
    }
  }
  ERR_clear_error();
  const Key key = ReadKey(key_pem);
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Bad("`key` cannot be used");
  }
  if (SSL_CTX_check_private_key(context) != 1) return Bad("`key` does not fit `certificate`");
  return {};
}

std::string_view TextOf(const ASN1_STRING* text) noexcept {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string CommonName(const X509* certificate) {
  std::array<char, 256> name{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             name.data(), static_cast<int>(name.size()));
  return {name.data(), static_cast<std::size_t>(std::max(size, 0))};
}

}  // namespace tidegate::openssl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/openssl.hpp"
#include "net/tls.hpp"
#include "tidegate/error.hpp"

// Helpers for the sources that use OpenSSL. Other sources must not include this header.

namespace tidegate::openssl {

using Context = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, FreedBy<SSL_free>>;

/// Returns the reason of OpenSSL's last error, and clears its errors.
[[nodiscard]] std::string LastError();
/// Returns the configuration error `problem`, with the reason of OpenSSL's last error.
[[nodiscard]] std::unexpected<Error> Bad(std::string problem);

/// Returns all objects in `pem` that `Next` reads.
template <class Object, Object (*Next)(BIO*)>
[[nodiscard]] std::vector<Object> ReadAll(const std::string& pem) {
  const Bio bio = Memory(pem);
  std::vector<Object> all;
  while (Object next = Next(bio.get())) all.push_back(std::move(next));
  return all;
}
[[nodiscard]] inline std::vector<Certificate> ReadCertificates(const std::string& pem) {
  return ReadAll<Certificate, NextCertificate>(pem);
}
/// Returns a context with the settings that clients and servers share.
[[nodiscard]] Context NewContext(const SSL_METHOD* method);
/// Makes `context` trust the certificate authorities in `pem`.
[[nodiscard]] Result<void> Trust(SSL_CTX* context, const std::string& pem);
/// Makes `context` present a certificate with its chain to the other side, and use its key.
[[nodiscard]] Result<void> Present(SSL_CTX* context, const std::string& certificate_pem,
                                   const std::string& key_pem);

[[nodiscard]] std::string_view TextOf(const ASN1_STRING* text) noexcept;
/// Returns the common name in the subject of a certificate; empty if there is none.
[[nodiscard]] std::string CommonName(const X509* certificate);
/// Calls `visit` with each alternative name of a certificate. Returns false if it has no such list.
template <class Visit>
bool EachAlternativeName(const X509* certificate, Visit visit) {
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) visit(*sk_GENERAL_NAME_value(all, i));
  GENERAL_NAMES_free(all);
  ERR_clear_error();
  return all != nullptr;
}

}  // namespace tidegate::openssl

namespace tidegate::net {

struct TlsSession::Impl {
  std::shared_ptr<const void> owner;  ///< Keeps the data of the handshake's callbacks alive.
  openssl::Ssl ssl;
  int records = 0;       ///< Records received in the current call of OpenSSL.
  bool flooded = false;  ///< A call has received too many records.

  /// Returns a session over `socket`, or nullptr if there is no memory.
  [[nodiscard]] static std::unique_ptr<Impl> Make(SSL_CTX* context, int socket);
};

}  // namespace tidegate::net

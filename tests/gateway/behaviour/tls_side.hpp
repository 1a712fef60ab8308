// SPDX-License-Identifier: Apache-2.0
// Test support for upstreams that use TLS: a certificate authority, certificates, and the server
// side of a connection.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/stream.hpp"

namespace tidegate::behaviour {

/// A certificate and its private key, both in PEM form.
struct Credentials {
  std::string certificate;
  std::string key;
};

/// A certificate authority that signs certificates.
class Authority {
 public:
  enum class Validity : bool { kNow, kOver };
  enum class Key : bool { kEc, kRsa };

  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  [[nodiscard]] const std::string& pem() const noexcept { return pem_; }
  /// `names`: the subject alternative names in OpenSSL's notation, such as
  /// `DNS:localhost,IP:127.0.0.1`.
  [[nodiscard]] Credentials Issue(const std::string& common_name, const std::string& names,
                                  Validity validity = Validity::kNow, Key kind = Key::kEc) const;
  /// A certificate revocation list in PEM form that revokes these certificates.
  [[nodiscard]] std::string Crl(const std::vector<Credentials>& revoked,
                                Validity validity = Validity::kNow) const;

 private:
  EVP_PKEY* key_;
  X509* certificate_;
  std::string pem_;
};

/// TLS settings of a server that presents `own`. With a `client_authority` (PEM), it requires a
/// client certificate that this authority signed.
class TlsContext {
 public:
  explicit TlsContext(const Credentials& own, const std::string& client_authority = {});
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  [[nodiscard]] SSL_CTX* get() const noexcept { return context_; }

 private:
  SSL_CTX* context_;
};

/// The server side of one TLS connection, over a blocking socket that TlsSide does not own.
class TlsSide : public test::Stream {
 public:
  TlsSide(const TlsContext& context, int socket);
  ~TlsSide() override;

  /// Performs the handshake. Returns false if it fails.
  [[nodiscard]] bool Accept();
  bool Send(std::string_view bytes) override;
  using Stream::Receive;
  Got Receive(std::string& to) override;
  /// Reads a request that has a Content-Length or no body. Returns an empty string if none arrives.
  std::string ReadRequest();
  /// Sends close_notify. Without it, the peer must treat the end of the connection as a truncation.
  void EndInOrder();
  /// Returns the common name of the client's certificate; empty if there is none.
  [[nodiscard]] std::string client_name() const;
  /// Returns the server name that the client requested (SNI); empty if there is none.
  [[nodiscard]] std::string server_name() const;

 private:
  SSL* ssl_;
};

}  // namespace tidegate::behaviour

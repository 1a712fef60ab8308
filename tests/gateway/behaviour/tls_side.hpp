// SPDX-License-Identifier: Apache-2.0
// What an upstream over TLS needs: an authority of its own, certificates, and the server's side of
// a connection.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/stream.hpp"

namespace tidegate::behaviour {

/// A certificate and its key, both in PEM form.
struct Credentials {
  std::string certificate;
  std::string key;
};

/// Signs certificates.
class Authority {
 public:
  enum class Validity : bool { kNow, kOver };
  enum class Key : bool { kEc, kRsa };

  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  [[nodiscard]] const std::string& pem() const noexcept { return pem_; }
  /// `names` as OpenSSL writes them: `DNS:localhost,IP:127.0.0.1`.
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

/// What a server presents. With an authority it wants a certificate of its clients, signed by it.
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

/// The server's side of one connection, over a blocking socket that it does not own.
class TlsSide : public test::Stream {
 public:
  TlsSide(const TlsContext& context, int socket);
  ~TlsSide() override;

  /// The handshake. False: it failed.
  [[nodiscard]] bool Accept();
  bool Send(std::string_view bytes) override;
  using Stream::Receive;
  Got Receive(std::string& to) override;
  /// A request with a length, or without a body; empty: none came.
  std::string ReadRequest();
  /// close_notify; without it an end is a cut.
  void EndInOrder();
  /// The common name of the client's certificate; empty: it has none.
  [[nodiscard]] std::string client_name() const;
  /// The server name that the client requested; empty: none.
  [[nodiscard]] std::string server_name() const;

 private:
  SSL* ssl_;
};

}  // namespace tidegate::behaviour

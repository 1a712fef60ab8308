// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/behaviour/tls_side.hpp"
#include "service/fixture.hpp"
#include "support/resp_client.hpp"
#include "support/stream.hpp"

namespace tidegate::service {

/// A saved session, with which a client resumes a connection later.
using TlsTicket = std::shared_ptr<SSL_SESSION>;

/// The settings of a client for its handshake.
struct TlsOptions {
  std::string server_name = {};
  std::optional<behaviour::Credentials> own = {};
  int least = TLS1_2_VERSION;
  int most = TLS1_3_VERSION;
  /// Protocols that the client offers by ALPN; empty: it sends no ALPN extension.
  std::vector<std::string> protocols = {};
  std::string suites = {};  ///< Cipher suites of TLS 1.2; empty: OpenSSL's default.
  /// Signature algorithms in OpenSSL's notation; empty: OpenSSL's default.
  std::string signatures = {};
  TlsTicket ticket = {};
  std::string before = {};  ///< Sent in plain text before the handshake.
  bool trickle = false;     ///< Sends every byte separately.
  bool hold = false;        ///< Sends the last bytes of the handshake together with the first data.
  int receive_buffer = 0;
};

/// The client side of a TLS connection. It trusts only certificates of Ours(): with any other
/// server certificate the handshake fails.
class TlsStream final : public test::Stream {
 public:
  explicit TlsStream(const net::Endpoint& to, const TlsOptions& options = {});
  ~TlsStream() override;

  bool Send(std::string_view bytes) override;
  using Stream::Receive;
  Got Receive(std::string& to) override;
  /// Sends close_notify and then closes the sending direction of the socket.
  void EndSending() override;
  /// Requests new keys for both directions; TLS 1.3 only.
  bool UpdateKeys();
  /// Renews the keys of this side only and sends the key update immediately.
  bool UpdateKeysNow();

  /// Returns whether the handshake has succeeded on this side; in TLS 1.3 the server may still
  /// refuse it.
  [[nodiscard]] bool shaken() const noexcept { return shaken_; }
  /// Returns OpenSSL's error if the handshake or a read failed.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] int version() const noexcept { return SSL_version(ssl_); }
  /// Returns the protocol that ALPN selected; empty: none.
  [[nodiscard]] std::string protocol() const;
  /// Returns the common name of the server's certificate. rsa() tells whether its key is an RSA
  /// key.
  [[nodiscard]] std::string certificate() const;
  [[nodiscard]] bool rsa() const;
  /// Returns the selected cipher suite.
  [[nodiscard]] std::string suite() const { return SSL_get_cipher_name(ssl_); }
  [[nodiscard]] bool resumed() const noexcept { return SSL_session_reused(ssl_) == 1; }
  /// Returns the session for the next connection. In TLS 1.3 there is none before the first read.
  [[nodiscard]] TlsTicket ticket() const;

 private:
  void NoteProblem();

  int socket_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool shaken_ = false;
  std::string problem_;
};

/// HttpClient over TLS.
class TlsHttpClient : public HttpClient {
 public:
  explicit TlsHttpClient(const net::Endpoint& to, const TlsOptions& options = {})
      : TlsHttpClient(std::make_unique<TlsStream>(to, options)) {}
  [[nodiscard]] TlsStream& tls() noexcept { return *tls_; }

 private:
  explicit TlsHttpClient(std::unique_ptr<TlsStream> tls)
      : HttpClient(std::unique_ptr<test::Stream>(tls.get())), tls_(tls.release()) {}
  TlsStream* tls_;
};

class TlsRespClient : public test::RespClient {
 public:
  explicit TlsRespClient(const net::Endpoint& to, const TlsOptions& options = {})
      : TlsRespClient(std::make_unique<TlsStream>(to, options)) {}
  [[nodiscard]] TlsStream& tls() noexcept { return *tls_; }

 private:
  explicit TlsRespClient(std::unique_ptr<TlsStream> tls)
      : test::RespClient(std::unique_ptr<test::Stream>(tls.get())), tls_(tls.release()) {}
  TlsStream* tls_;
};

/// Returns the certificate authority that the clients of the tests trust; Theirs() returns another
/// authority.
[[nodiscard]] const behaviour::Authority& Ours();
[[nodiscard]] const behaviour::Authority& Theirs();

}  // namespace tidegate::service

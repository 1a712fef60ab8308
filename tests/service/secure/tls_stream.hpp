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

/// What a client remembers of a connection, to come back sooner.
using TlsTicket = std::shared_ptr<SSL_SESSION>;

/// What a client brings to a handshake.
struct TlsOptions {
  std::string server_name = {};
  std::optional<behaviour::Credentials> own = {};
  int least = TLS1_2_VERSION;
  int most = TLS1_3_VERSION;
  std::vector<std::string> protocols = {};  ///< Of ALPN; none: it is not spoken of.
  std::string suites = {};                  ///< Of TLS 1.2; empty: OpenSSL's own choice.
  std::string signatures = {};              ///< As OpenSSL lists them; empty: its own choice.
  TlsTicket ticket = {};
  std::string before = {};  ///< Sent in the clear, before anything else.
  bool trickle = false;     ///< Every byte on the wire is sent by itself.
  bool hold = false;        ///< The handshake's last bytes wait for the first that are sent.
  int receive_buffer = 0;
};

/// A client's side of a connection over TLS. It believes Ours() only: a server with another
/// certificate has failed the handshake.
class TlsStream final : public test::Stream {
 public:
  explicit TlsStream(const net::Endpoint& to, const TlsOptions& options = {});
  ~TlsStream() override;

  bool Send(std::string_view bytes) override;
  using Stream::Receive;
  Got Receive(std::string& to) override;
  /// close_notify, then the end of the socket's sending.
  void EndSending() override;
  /// New keys for both directions, 1.3 only.
  bool UpdateKeys();
  /// Of this side alone, and sent at once.
  bool UpdateKeysNow();

  /// The handshake is over, for this side: in 1.3 the other one may still refuse.
  [[nodiscard]] bool shaken() const noexcept { return shaken_; }
  /// Why not, or why nothing came: as OpenSSL says it.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] int version() const noexcept { return SSL_version(ssl_); }
  /// What was agreed on by ALPN; empty: nothing.
  [[nodiscard]] std::string protocol() const;
  /// The common name of the server's certificate, and its kind of key.
  [[nodiscard]] std::string certificate() const;
  [[nodiscard]] bool rsa() const;
  /// The cipher suite that was agreed on.
  [[nodiscard]] std::string suite() const { return SSL_get_cipher_name(ssl_); }
  [[nodiscard]] bool resumed() const noexcept { return SSL_session_reused(ssl_) == 1; }
  /// For the next connection. In 1.3 there is none before something was read.
  [[nodiscard]] TlsTicket ticket() const;

 private:
  void NoteProblem();

  int socket_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool shaken_ = false;
  std::string problem_;
};

/// The clients of the other tests, over TLS.
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

/// The authority that the tests' clients believe, and another.
[[nodiscard]] const behaviour::Authority& Ours();
[[nodiscard]] const behaviour::Authority& Theirs();

}  // namespace tidegate::service

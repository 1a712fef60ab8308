// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/tls_spec.hpp"
#include "net/tls.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// The TLS settings of a listener: 1.3, or 1.2 with AEAD suites and ephemeral keys. Immutable and
/// thread-safe. New certificates need a new object; connections that have begun keep theirs.
class TlsServer {
 public:
  /// `protocol` is selected if a client offers protocols (ALPN).
  [[nodiscard]] static Result<std::shared_ptr<const TlsServer>> Make(const ListenTls& spec,
                                                                     TlsClient::Protocol protocol);
  ~TlsServer();

  /// Returns false if a certificate is required and the client's certificate is not valid: a
  /// resumed session may outlive its certificate. REQUIRES: the handshake is done.
  [[nodiscard]] bool Accepts(const TlsSession& session) const noexcept;
  /// Returns nullptr if there is no memory.
  [[nodiscard]] static std::unique_ptr<TlsSession> NewSession(
      const std::shared_ptr<const TlsServer>& server, int socket);

 private:
  struct Impl;
  explicit TlsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::net

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/tls_session.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// How a listener speaks TLS: 1.3, or 1.2 with AEAD cipher suites and ephemeral keys. Immutable and
/// thread-safe: new certificates are a new one, and connections that have begun keep theirs.
class TlsServer {
 public:
  struct Pair {
    std::string certificate_pem;  ///< With its chain.
    std::string key_pem;
  };
  enum class Clients : std::uint8_t { kUnknown, kMayBeKnown, kMustBeKnown };
  struct Options {
    /// A client gets the one for the name that it asks for: by its whole name, then by a wildcard
    /// of one label; else the first. Those for the same names with different kinds of keys stand
    /// beside each other, and the client's abilities choose.
    std::vector<Pair> certificates;
    std::string client_ca_pem;  ///< Authorities whose client certificates are accepted.
    /// CRLs of the authorities that issued the clients' certificates; empty: revocation is not
    /// checked. With CRLs, a client is refused if its certificate is revoked, or if its authority
    /// has no valid CRL here.
    std::string client_crl_pem;
    Clients clients = Clients::kUnknown;
    bool only_13 = false;
    bool http = false;  ///< Agree on `http/1.1` with clients that offer protocols.
  };
  [[nodiscard]] static Result<std::shared_ptr<const TlsServer>> Make(const Options& options);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  /// Whether the client is known, if it must be: one that resumes a session may have outlived its
  /// certificate. After the handshake.
  [[nodiscard]] bool Accepts(const TlsSession& session) const noexcept;
  /// nullptr: no memory.
  [[nodiscard]] static std::unique_ptr<TlsSession> NewSession(
      const std::shared_ptr<const TlsServer>& server, int socket);

 private:
  struct Impl;
  explicit TlsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::net

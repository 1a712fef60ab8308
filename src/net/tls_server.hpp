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
  struct Pair {
    std::string certificate_pem;  ///< The certificate with its chain.
    std::string key_pem;
  };
  /// Selects whether clients present certificates.
  enum class Clients : std::uint8_t { kNone, kOptional, kRequired };
  struct Options {
    /// A client gets the certificate for the name that it requests: a certificate for the whole
    /// name, or with a wildcard for its first label; otherwise the first certificate. Of several
    /// certificates for the same names with different kinds of keys, it gets the one whose kind it
    /// supports.
    std::vector<Pair> certificates;
    std::string client_ca_pem;  ///< Authorities whose client certificates are accepted.
    /// CRLs of the authorities that issued the clients' certificates; empty: revocation is not
    /// checked. With CRLs, a client is refused if its certificate is revoked, or if its authority
    /// has no valid CRL here.
    std::string client_crl_pem;
    Clients clients = Clients::kNone;
    bool only_13 = false;
    bool http = false;  ///< Selects `http/1.1` if a client offers protocols (ALPN).
  };
  [[nodiscard]] static Result<std::shared_ptr<const TlsServer>> Make(const Options& options);
  ~TlsServer();

  /// Returns false if a certificate is required and the client's certificate is not valid: a
  /// resumed session may outlive its certificate. REQUIRES: the handshake is done.
  [[nodiscard]] bool Accepts(const TlsSession& session) const noexcept;
  /// Returns a session over `socket`, or nullptr if there is no memory.
  [[nodiscard]] static std::unique_ptr<TlsSession> NewSession(
      const std::shared_ptr<const TlsServer>& server, int socket);

 private:
  struct Impl;
  explicit TlsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::net

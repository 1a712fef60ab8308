// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "net/tls_session.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// How this process speaks TLS to one kind of server. Immutable and thread-safe.
class TlsClient {
 public:
  struct Options {
    std::string ca_pem;           ///< Empty: the system's authorities.
    std::string certificate_pem;  ///< Of this side, with its chain; empty: none.
    std::string key_pem;
    bool verify = true;
    bool http = true;  ///< Says so (ALPN).
  };
  [[nodiscard]] static Result<std::shared_ptr<const TlsClient>> Make(const Options& options);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// `name`: what the certificate must be for, a host name or an address. nullptr: no memory.
  [[nodiscard]] std::unique_ptr<TlsSession> NewSession(int socket, const std::string& name) const;

 private:
  struct Impl;
  explicit TlsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::net

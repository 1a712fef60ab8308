// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "net/openssl.hpp"
#include "net/tls_session.hpp"

namespace tidegate::net {

struct TlsSession::Impl {
  std::shared_ptr<const void> owner;  ///< What the handshake's callbacks refer to.
  openssl::Ssl ssl;
  int records = 0;       ///< That came since OpenSSL was called last.
  bool flooded = false;  ///< There were too many.

  /// A connection over `socket`. nullptr: no memory.
  [[nodiscard]] static std::unique_ptr<Impl> Make(SSL_CTX* context, int socket);
};

}  // namespace tidegate::net

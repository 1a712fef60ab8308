// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "net/openssl.hpp"
#include "net/tls_session.hpp"

namespace tidegate::net {

struct TlsSession::Impl {
  std::shared_ptr<const void> owner;  ///< What the handshake's callbacks refer to.
  openssl::Ssl ssl;
};

}  // namespace tidegate::net

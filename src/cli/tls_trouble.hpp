// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/dial.hpp"
#include "cli/keyring.hpp"
#include "net/tls_session.hpp"

namespace tidegate::cli {

/// A failure of TLS for the person who must act: what is wrong, and who can mend it how. It may
/// hold foreign text. Its code is kBadConfig where the caller asked in the wrong way, or showed the
/// wrong certificate; kNetwork where the server is not to be believed, or TLS failed.
[[nodiscard]] Error TroubleOf(const net::TlsSession& session, const ServerAddress& address,
                              const Keyring& keyring, const Patience& patience);

/// Of a server that was asked without TLS and wants it.
[[nodiscard]] Error WantsTls(const ServerAddress& address, const Patience& patience);

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "decision/snapshot.hpp"
#include "frontends/access_policy.hpp"
#include "frontends/refusals.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// Where an HTTP caller presents a token: in `X-Tidegate-Token: TOKEN` always; in `Authorization:
/// Bearer TOKEN` only if the request is the caller's own. A proxy copies its client's
/// Authorization.
enum class TokenFields : std::uint8_t { kOwn, kCopied };

/// Returns whether the exchange's caller has the rights that are `needed`. If not, the exchange has
/// been answered: with 401 if the caller must authenticate, with 403 if that would not help. A
/// proxy gets a 500 instead of the 401, which would reach its client.
[[nodiscard]] bool Authorize(net::HttpExchange& exchange, const AccessControl& access,
                             ListenerId listener, TokenFields fields, Rights needed,
                             Refusals& refusals);

/// The caller's name for the audit log: that of its token, or how else it authenticated.
[[nodiscard]] std::string CallerName(const net::HttpExchange& exchange, const Tokens& tokens);

}  // namespace tidegate

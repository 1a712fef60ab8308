// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

/// `Content-Type: application/json`, with or without parameters. A browser sends it to a foreign
/// origin only after a preflight request, so no page can do it without its reader's knowledge.
[[nodiscard]] bool IsJson(const net::HttpHead& head) noexcept;

/// Which web page a request comes from, by its Origin.
enum class Page : std::uint8_t {
  kNone,     ///< It comes from a program.
  kOwn,      ///< A page that was loaded from this address: no other server can have served it.
  kForeign,  ///< Any other page; its name may resolve to this machine (DNS rebinding).
};
[[nodiscard]] Page PageOf(const net::HttpHead& head) noexcept;

/// Whether `host`, as in Host, is an address or `localhost`, with or without a port: no foreign
/// page can be reached by it.
[[nodiscard]] bool NamesAddress(std::string_view host) noexcept;

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decision/snapshot.hpp"
#include "frontends/access_policy.hpp"
#include "frontends/auth_failures.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// The header fields that may contain a caller's token: `X-Tidegate-Token: TOKEN`, and with kOwn
/// also `Authorization: Bearer TOKEN`. With kCopied, Authorization is ignored: the caller is a
/// proxy, which copies the Authorization of its client.
enum class TokenFields : std::uint8_t { kOwn, kCopied };

/// Returns true if the exchange's caller has the `needed` rights. If not, the exchange has been
/// answered: with 401 if the caller must authenticate, with 403 if authentication would not help,
/// and with 429 and the end of the connection if its address presents wrong tokens too often. A
/// proxy (kCopied) gets 500 instead of 401 and 429, which it would forward to its client.
[[nodiscard]] bool Authorize(net::HttpExchange& exchange, const AccessControl& access,
                             ListenerId listener, TokenFields fields, Rights needed,
                             AuthFailures& failures);

/// Returns whether the peer is one client, or a proxy whose clients share its failures.
[[nodiscard]] AuthFailure::Peers PeersOf(const AccessControl& access,
                                         const net::Peer& peer) noexcept;

/// Returns the caller's name for the audit log: the name of its token; the name that the
/// configuration gives to its certificate, or else the certificate's subject; or `(loopback)`.
[[nodiscard]] std::string CallerName(const net::HttpExchange& exchange,
                                     const AccessControl& access);

/// Returns true if the head announces a body that the API can read: one Content-Type,
/// `application/json`, and no content coding but `identity`. If not, the exchange has been answered
/// with 415. Browsers send that type to another origin only after a preflight request.
[[nodiscard]] bool AcceptsBody(net::HttpExchange& exchange);

/// The kind of web page that a request comes from, by its Origin and its Sec-Fetch-Site.
enum class Page : std::uint8_t {
  kNone,     ///< No web page: the request comes from a program.
  kOwn,      ///< A page that was loaded from this address: no other server can have served it.
  kForeign,  ///< Any other page; its host may resolve to this machine (DNS rebinding).
};
[[nodiscard]] Page PageOf(const net::HttpHead& head) noexcept;

/// Returns true if `host`, the value of a Host field, is an address or `localhost`, with or without
/// a port. A request of another server's page cannot have such a Host.
[[nodiscard]] bool NamesAddress(std::string_view host) noexcept;

/// Returns true if the request may come from a page whose name was made to resolve to this machine
/// (DNS rebinding): the caller is local and needs no credentials, and Host is a name.
[[nodiscard]] bool MayBeRebound(const net::HttpExchange& exchange, const AccessControl& access,
                                ListenerId listener) noexcept;

/// The detail of the 403 for a request for which MayBeRebound is true.
inline constexpr std::string_view kUseAddressAsHost =
    "use the address of this machine or localhost as the host: a web page could make any other "
    "name resolve to this machine";

}  // namespace tidegate

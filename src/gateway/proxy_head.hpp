// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "gateway/fields.hpp"
#include "net/buffers.hpp"
#include "net/http1_parser.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// The values that the gateway adds to a request.
struct Introduction {
  std::string_view path = {};        ///< The normalised and rewritten path.
  std::string_view host = {};        ///< The Host field.
  std::string_view peer = {};        ///< The address that connected.
  std::string_view scheme = {};      ///< `http` or `https`, of the client's connection.
  std::string_view request_id = {};  ///< The gateway's id, or the id of a trusted peer.
  bool upgrade = false;              ///< The connection may be upgraded.
};

/// Writes the head of a request for the upstream: in HTTP/1.1, with one framing, without fields of
/// the client's connection, and with X-Forwarded-* fields of the gateway.
void WriteRequestHead(net::OutBuffer& out, const net::HttpHead& head, const RequestFields& fields,
                      const Introduction& about, const HeaderEdits& edits);

/// Returns the protocol that a request asks to upgrade to, if it may be tunnelled; otherwise an
/// empty view. The request must name only one protocol, and never HTTP/2, which would bypass all
/// rules.
[[nodiscard]] std::string_view UpgradeProtocol(const net::HttpHead& head) noexcept;
/// Returns true if a 101 switches to the requested protocol, and version if the client named one.
[[nodiscard]] bool SwitchesTo(const net::ResponseHead& head, std::string_view requested) noexcept;
/// Returns the request id of a trusted peer; empty if it has none, or an invalid one.
[[nodiscard]] std::string_view GivenRequestId(const net::HttpHead& head,
                                              const RequestFields& fields) noexcept;

/// The two forms of older RateLimit fields: `RateLimit-Limit` and the like, and the same with `X-`.
struct OlderFields {
  bool ratelimit = false;
  bool x_ratelimit = false;
};
/// The values that the gateway adds to a response.
struct AnswerNotes {
  std::string_view request_id = {};
  std::string_view date = {};           ///< Written if the upstream sent none.
  const Decision* governing = nullptr;  ///< Decision whose RateLimit fields follow; nullptr: none.
  OlderFields older = {};               ///< The older forms that the configuration selects.
  bool stream = false;                  ///< Trailers of the response are forwarded.
  bool upgrade = false;  ///< The status is 101: Connection and Upgrade are forwarded.
};

/// Writes the field lines of a response, without framing. Returns which older RateLimit fields the
/// caller may write: not those that would announce more than the upstream's fields.
OlderFields WriteAnswerHead(net::OutBuffer& out, const net::ResponseHead& head,
                            const AnswerNotes& notes, const HeaderEdits& edits);

}  // namespace tidegate

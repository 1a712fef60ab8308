// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "gateway/fields.hpp"
#include "net/http1_parser.hpp"
#include "net/http1_response.hpp"
#include "net/out_buffer.hpp"
#include "rules/gateway_spec.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// What the gateway adds to a request.
struct Introduction {
  std::string_view path = {};        ///< Normalised and rewritten.
  std::string_view host = {};        ///< The Host field.
  std::string_view peer = {};        ///< The address that connected.
  std::string_view scheme = {};      ///< `http` or `https`, of the client's connection.
  std::string_view request_id = {};  ///< The gateway's, or that of a trusted peer.
  bool upgrade = false;              ///< The connection may be upgraded.
};

/// Writes the head of a request for the upstream: HTTP/1.1, one framing, no field of the client's
/// connection, X-Forwarded-* written by the gateway.
void WriteRequestHead(net::OutBuffer& out, const net::HttpHead& head, const RequestFields& fields,
                      const Introduction& about, const HeaderEdits& edits);

/// Whether a request asks for another protocol that may be tunnelled: WebSocket and the like, never
/// HTTP/2, which would carry requests past all rules.
[[nodiscard]] bool MayUpgrade(const net::HttpHead& head) noexcept;
/// Returns the request id of a trusted peer if it is neither too long nor has unusual characters;
/// otherwise an empty view.
[[nodiscard]] std::string_view GivenRequestId(const net::HttpHead& head,
                                              const RequestFields& fields) noexcept;

/// Older, single-valued RateLimit fields by their form: `RateLimit-Limit` and the like, and the
/// same with `X-`.
struct OlderFields {
  bool ratelimit = false;
  bool x_ratelimit = false;
};
/// What the client is told in an answer beyond what the upstream said.
struct AnswerNotes {
  std::string_view request_id = {};
  std::string_view date = {};           ///< Written if the upstream sent none.
  const Decision* governing = nullptr;  ///< Whose RateLimit fields will follow; nullptr: none.
  OlderFields older = {};               ///< Which of the older forms would.
  bool stream = false;                  ///< Its trailers are passed on.
  bool upgrade = false;                 ///< 101: Connection and Upgrade are passed on.
};

/// The field lines of an answer, without framing. Returns which of our older RateLimit fields shall
/// follow: not those that would tell more than the upstream told.
OlderFields WriteAnswerHead(net::OutBuffer& out, const net::ResponseHead& head,
                            const AnswerNotes& notes, const HeaderEdits& edits);

}  // namespace tidegate

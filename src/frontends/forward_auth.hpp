// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "frontends/resolve.hpp"
#include "net/http1_message.hpp"

namespace tidegate {

/// Where a proxy asks whether its client's request may pass.
inline constexpr std::string_view kAuthPath = "/v1/auth";

/// Whether a request for `path` is such a question: `/v1/auth`, or that and a path behind it.
[[nodiscard]] bool IsForwardAuth(std::string_view path) noexcept;

/// The client's request as its proxy tells it, not yet normalised. Views point into the head.
struct ToldRequest {
  std::string_view method;
  std::string_view host;
  std::string_view path;
  std::string_view query;
};

/// What the proxy's own request says of its client's. There are three ways to say it:
///
///  - X-Forwarded-Uri, -Method, and -Host (Traefik, Caddy, APISIX);
///  - X-Original-URI or -URL, and -Method, with the client's Host unless an URL has it (nginx);
///  - the request itself, with `/v1/auth` before its path (Envoy).
///
/// URI and method are taken from one of them. A proxy that speaks one way often passes on what its
/// client wrote in another, so the others are nothing to rely on, but they may not contradict:
/// what tells of two different requests is refused, and so is a field that comes twice.
[[nodiscard]] std::optional<Objection> ReadToldRequest(const net::HttpHead& head,
                                                       ToldRequest& told);

/// `deny_status=N` of the question's query: what every refusal is answered with; 0 without it.
/// Anything else there is a mistake of whoever configured the proxy: a 500, since a 4xx would be
/// taken for a denial.
[[nodiscard]] std::optional<Objection> ReadDenyStatus(std::string_view query, int& status);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "frontends/resolve.hpp"
#include "net/http1_message.hpp"

namespace tidegate {

/// The endpoint at which a proxy asks whether its client's request may pass.
inline constexpr std::string_view kAuthPath = "/v1/auth";

/// True if `path` is `/v1/auth`, or `/v1/auth` followed by the path of the client's request.
[[nodiscard]] bool IsForwardAuth(std::string_view path) noexcept;

/// The client's request as its proxy describes it, not yet normalised. Views point into the head.
struct ToldRequest {
  std::string_view method;
  std::string_view host;
  std::string_view path;
  std::string_view query;
};

/// Reads the client's request from the proxy's own request. A proxy describes it in one of three
/// forms:
///
///  - X-Forwarded-Uri, -Method, and -Host (Traefik, Caddy, APISIX);
///  - X-Original-URI or -URL, and -Method, with the client's Host unless the URL has one (nginx);
///  - the request itself, with `/v1/auth` before its path (Envoy).
///
/// URI and method are taken from the first form that is complete. A proxy that uses one form often
/// forwards fields of the other forms as its client wrote them. Those are not used, but they must
/// not contradict: a request that describes two different requests is rejected, and so is a request
/// in which one of the fields occurs twice.
[[nodiscard]] std::optional<Objection> ReadToldRequest(const net::HttpHead& head,
                                                       ToldRequest& told);

/// Reads `deny_status=N` from the query: the status that replaces that of every denial; 0 if it is
/// absent. Any other parameter means that the proxy is configured wrongly. It is answered with 500,
/// because the proxy would take a 4xx for a denial.
[[nodiscard]] std::optional<Objection> ReadDenyStatus(std::string_view query, int& status);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "frontends/question.hpp"
#include "net/http1_parser.hpp"

namespace tidegate {

/// The endpoint at which a proxy asks whether its client's request is allowed.
inline constexpr std::string_view kAuthPath = "/v1/auth";

/// Returns true if `path` is `/v1/auth`, or `/v1/auth` followed by the client's path.
[[nodiscard]] bool IsForwardAuth(std::string_view path) noexcept;

/// The client's request as its proxy describes it, not yet normalised. Views point into the head.
struct ClientRequest {
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
/// The first complete form is used. The client may have sent the fields of the other forms: they
/// must not contradict the first, and no field may occur twice.
[[nodiscard]] std::optional<Objection> ReadClientRequest(const net::HttpHead& head,
                                                         ClientRequest& request);

/// Reads `deny_status=N`, the status of every denial, from the query. Sets `status` to 0 if the
/// parameter is absent. Any other parameter is answered with 500, because the proxy would treat a
/// 4xx as a denial.
[[nodiscard]] std::optional<Objection> ReadDenyStatus(std::string_view query, int& status);

}  // namespace tidegate

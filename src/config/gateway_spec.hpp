// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "base/tls_spec.hpp"
#include "identity/path.hpp"
#include "rules/denial_spec.hpp"
#include "rules/match_spec.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// A route: which requests the gateway sends to which upstream, and how it changes them. The
/// gateway uses the first route in the file that matches a request.
struct RouteSpec {
  /// Replaces the beginning of the path by whole segments: with prefix `/v1` and with `/`,
  /// `/v1/users` becomes `/users`. Both are normal paths without a final slash, except `/` itself.
  /// A path that does not begin with the prefix is not changed.
  struct Rewrite {
    std::string prefix = {};
    std::string with = {};
    friend bool operator==(const Rewrite&, const Rewrite&) = default;
  };
  enum class Host : std::uint8_t {
    kPreserve,  ///< Upstreams get the Host that the client sent.
    kTarget,    ///< Upstreams get the host and port of the target.
    kFixed,     ///< Upstreams get `host_name`.
  };

  /// Has the syntax of a rule's id. By default it is `<upstream>-<place from 1>`, cut to fit.
  std::string id = {};
  MatchSpec match = {};
  std::string upstream = {};
  std::optional<Rewrite> rewrite = {};
  HeaderEdits request_headers = {};
  HeaderEdits response_headers = {};
  std::optional<DenialSpec> denial = {};  ///< The response to denied requests of this route.
  Host host = Host::kPreserve;
  std::string host_name = {};                   ///< A host with an optional port; IPv6 in brackets.
  std::optional<Micros> response_timeout = {};  ///< If absent, the upstream's is used.
  std::optional<std::size_t> body_bytes = {};   ///< If absent, the gateway's is used.
  std::optional<EncodedSlashes> encoded_slashes = {};  ///< If absent, the value in `paths` is used.
  Position at = {};

  friend bool operator==(const RouteSpec&, const RouteSpec&) = default;
};

/// A group of servers that serve the same content, and how the gateway uses them.
struct UpstreamSpec {
  enum class Balance : std::uint8_t { kRoundRobin, kLeastRequests };
  struct Target {
    bool tls = false;       ///< Whether the URL begins with `https://`.
    std::string host = {};  ///< A lower-case name or an address; IPv6 without brackets.
    std::uint16_t port = 80;
    int weight = 1;  ///< The share of requests relative to other targets, 1 to 1,000.
    friend bool operator==(const Target&, const Target&) = default;
  };
  /// Health checks: requests at intervals, whether there is traffic or not.
  struct Health {
    std::string path = "/";  ///< The path that is requested, with an optional query.
    std::string host = {};  ///< The Host of the request; if empty, the host and port of the target.
    Micros interval = std::chrono::seconds{5};
    /// How long a response may take; at most the interval.
    Micros timeout = std::chrono::seconds{2};
    int healthy = 2;    ///< Consecutive good responses that make an unhealthy target healthy.
    int unhealthy = 3;  ///< Consecutive bad responses that make a target unhealthy.
    int status_from = 200;
    int status_to = 399;
    friend bool operator==(const Health&, const Health&) = default;
  };
  /// Ejects a target for some time if requests to it fail.
  struct Ejection {
    /// Consecutive failures (no response, or 502, 503, 504) that eject a target; 0: off.
    int failures = 5;
    /// How long the first ejection lasts; each consecutive ejection lasts longer by this time.
    Micros time = std::chrono::seconds{10};
    /// The most targets, in percent, that are ejected at the same time; the last target never is.
    int percent = 50;
    friend bool operator==(const Ejection&, const Ejection&) = default;
  };
  struct Retries {
    int attempts = 1;  ///< Attempts after the first; 0: off.
    /// The most retries in percent of requests, once a reserve of 100 is used up.
    int percent = 20;
    bool timeout = false;  ///< Retry also if the response does not begin in time.
    /// Retry also after responses with these statuses: any of 502, 503 and 504, ascending.
    std::vector<int> statuses = {};
    friend bool operator==(const Retries&, const Retries&) = default;
  };

  std::string name = {};  ///< Has the syntax of a rule's id.
  std::vector<Target> targets = {};
  Balance balance = Balance::kRoundRobin;
  std::size_t max_requests = 0;  ///< Concurrent requests of this process to a target; 0: no limit.
  std::size_t keep_alive = 256;  ///< Idle connections that one reactor keeps to one target.
  Micros keep_alive_timeout = std::chrono::seconds{55};
  /// The kernel sends a lost first packet again after one second and after three. With a shorter
  /// timeout, an upstream whose queue was full for a moment would look dead.
  Micros connect_timeout = std::chrono::seconds{5};
  Micros response_timeout = std::chrono::seconds{60};  ///< For the head of a response.
  Micros idle_timeout = std::chrono::seconds{60};      ///< How long a body or a tunnel may be idle.
  Micros resolve = std::chrono::seconds{10};           ///< The interval between DNS lookups.
  bool accept_bare_lf = false;  ///< Whether lines of responses may end with LF instead of CRLF.
  std::optional<Health> health = {};
  Ejection ejection = {};
  Retries retries = {};
  TlsClientSpec tls = {};

  friend bool operator==(const UpstreamSpec&, const UpstreamSpec&) = default;
};

/// The settings for all requests that pass the gateway.
struct GatewaySpec {
  std::size_t body_bytes = 0;  ///< The longest body of a request; 0: no limit.
  bool merge_slashes = true;   ///< Forward `//` as `/`. Routes and rules see `/` in either case.
  /// Forward header fields with `_` in their names. Many servers read `_` as `-`, so `X_Api_Key`
  /// would reach them past a rule that counts by `x-api-key`.
  bool underscores = false;
  /// What happens to a request whose Expect header is not `100-continue`.
  enum class UnknownExpect : std::uint8_t {
    kReject,  ///< The request is answered with 417.
    kIgnore,  ///< The request is forwarded without its Expect header.
  };
  UnknownExpect unknown_expect = UnknownExpect::kReject;
  std::size_t response_header_bytes = 16u << 10;  ///< Status line and header lines together.
  std::size_t response_header_count = 128;
  friend bool operator==(const GatewaySpec&, const GatewaySpec&) = default;
};

/// The access log: one line of JSON per request that passed the gateway.
struct AccessLogSpec {
  /// `stdout`, `stderr`, `off`, or the path of a file in a folder that exists.
  std::string path = "stdout";
  friend bool operator==(const AccessLogSpec&, const AccessLogSpec&) = default;
};

}  // namespace tidegate

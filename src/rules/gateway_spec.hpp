// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/denial_spec.hpp"
#include "rules/header_edits.hpp"
#include "rules/match_spec.hpp"
#include "rules/path.hpp"
#include "rules/problem.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// Where the gateway sends a request. The first route of the file that matches has it.
struct RouteSpec {
  /// `/v1/users` becomes `/users`, with prefix `/v1` and with `/`: whole segments only. Both are
  /// normal paths without a final slash, but for `/` itself. A path that does not begin with the
  /// prefix stays as it is.
  struct Rewrite {
    std::string prefix = {};
    std::string with = {};
    friend bool operator==(const Rewrite&, const Rewrite&) = default;
  };
  enum class Host : std::uint8_t {
    kPreserve,  ///< The client's.
    kTarget,    ///< The target's own name.
    kFixed,     ///< `host_name`.
  };

  /// As a rule's. Where the file has none: `<upstream>-<place from 1>`, the former cut to fit.
  std::string id = {};
  MatchSpec match = {};
  std::string upstream = {};
  std::optional<Rewrite> rewrite = {};
  HeaderEdits request_headers = {};
  HeaderEdits response_headers = {};
  std::optional<DenialSpec> denial = {};  ///< The response to denied requests of this route.
  Host host = Host::kPreserve;
  std::string host_name = {};                          ///< Perhaps with a port; IPv6 in brackets.
  std::optional<Micros> response_timeout = {};         ///< Nothing: the upstream's.
  std::optional<std::size_t> body_bytes = {};          ///< Nothing: the gateway's.
  std::optional<EncodedSlashes> encoded_slashes = {};  ///< Nothing: that of `paths`.
  Position at = {};

  friend bool operator==(const RouteSpec&, const RouteSpec&) = default;
};

/// Servers that answer the same, and how they are used.
struct UpstreamSpec {
  enum class Balance : std::uint8_t { kRoundRobin, kLeastRequests };
  struct Target {
    bool tls = false;       ///< `https://`.
    std::string host = {};  ///< A name or an address; IPv6 without brackets. Lower case.
    std::uint16_t port = 80;
    int weight = 1;  ///< 1 to 1,000.
    friend bool operator==(const Target&, const Target&) = default;
  };
  /// Asked at intervals, whether there is traffic or not.
  struct Health {
    std::string path = "/";  ///< Perhaps with a query.
    std::string host = {};   ///< Perhaps with a port. Empty: the target's own.
    Micros interval = std::chrono::seconds{5};
    Micros timeout = std::chrono::seconds{2};  ///< At most the interval.
    int healthy = 2;    ///< So many good answers in a row bring a target back,
    int unhealthy = 3;  ///< so many bad ones take it out.
    int status_from = 200;
    int status_to = 399;
    friend bool operator==(const Health&, const Health&) = default;
  };
  /// By what becomes of the traffic itself.
  struct Ejection {
    int failures = 5;  ///< In a row: no connection, no answer, or 502, 503, 504. 0: off.
    Micros time = std::chrono::seconds{10};  ///< The first time; each in a row is longer by that.
    int percent = 50;                        ///< Of the targets, at most; never the last one.
    friend bool operator==(const Ejection&, const Ejection&) = default;
  };
  struct Retries {
    int attempts = 1;                ///< After the first. 0: off.
    int percent = 20;                ///< Of the requests, once a hundred put by are used up.
    bool timeout = false;            ///< Also where no answer began in time.
    std::vector<int> statuses = {};  ///< Also after these, of 502, 503, 504. Ascending.
    friend bool operator==(const Retries&, const Retries&) = default;
  };
  struct Tls {
    std::string ca_pem = {};       ///< Empty: the system's authorities.
    std::string server_name = {};  ///< Empty: the target's host.
    std::string certificate_pem =
        {};  ///< Of this gateway, where the target asks for one; with its key.
    std::string key_pem = {};
    bool verify = true;
    friend bool operator==(const Tls&, const Tls&) = default;
  };

  std::string name = {};  ///< As a rule's id.
  std::vector<Target> targets = {};
  Balance balance = Balance::kRoundRobin;
  std::size_t max_requests = 0;  ///< At the same time to one target, by this process. 0: no cap.
  std::size_t keep_alive = 256;  ///< Idle connections kept to one target by one reactor. 0: none.
  Micros keep_alive_timeout = std::chrono::seconds{55};
  /// A lost first packet is sent again after one second, and after three: below that, an upstream
  /// whose queue was full for a moment would look dead.
  Micros connect_timeout = std::chrono::seconds{5};
  Micros response_timeout = std::chrono::seconds{60};  ///< Until the head of the answer is there.
  Micros idle_timeout = std::chrono::seconds{60};  ///< Of a body, and of a tunnel without a byte.
  Micros resolve = std::chrono::seconds{10};       ///< Names are looked up anew so often.
  bool accept_bare_lf = false;  ///< Whether lines of responses may end with LF instead of CRLF.
  std::optional<Health> health = {};
  Ejection ejection = {};
  Retries retries = {};
  Tls tls = {};

  friend bool operator==(const UpstreamSpec&, const UpstreamSpec&) = default;
};

/// What holds for all requests that pass the gateway.
struct GatewaySpec {
  std::size_t body_bytes = 0;  ///< The longest body of a request; 0: no limit, since none is kept.
  bool merge_slashes = true;   ///< `//` is `/`, to routes, rules and upstreams alike.
  /// Whether fields with `_` in their names pass. Many servers take it for `-`: what a rule counts
  /// by `x-api-key` would then come as `X_Api_Key`, unseen by the rule.
  bool underscores = false;
  /// How a request is treated whose Expect is not `100-continue`.
  enum class UnknownExpect : std::uint8_t {
    kReject,  ///< 417.
    kIgnore,  ///< Forwarded without Expect.
  };
  UnknownExpect unknown_expect = UnknownExpect::kReject;
  std::size_t response_header_bytes = 16u << 10;  ///< Status line and header lines of a response.
  std::size_t response_header_count = 128;
  friend bool operator==(const GatewaySpec&, const GatewaySpec&) = default;
};

/// One line of JSON per request that passed the gateway.
struct AccessLogSpec {
  std::string path = "stdout";  ///< Or `stderr`, `off`, or a file, whose folder exists.
  friend bool operator==(const AccessLogSpec&, const AccessLogSpec&) = default;
};

}  // namespace tidegate

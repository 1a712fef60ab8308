// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rules/address.hpp"
#include "rules/client_address.hpp"
#include "rules/content_digest.hpp"
#include "rules/denial_spec.hpp"
#include "rules/gateway_spec.hpp"
#include "rules/listen_spec.hpp"
#include "rules/match_spec.hpp"
#include "rules/problem.hpp"
#include "rules/source.hpp"
#include "rules/system_user.hpp"
#include "store/redis/redis_url.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

// A configuration as a person wrote it, checked but not yet compiled: rules/rule_set.hpp does
// that. Plain values, equal if the files say the same.

/// What one request costs.
struct CostSpec {
  enum class Kind : std::uint8_t { kFixed, kHeader, kResponse };
  Kind kind = Kind::kFixed;
  std::int64_t fixed = 1;
  std::string header;  ///< Lower case. kHeader: of the request; kResponse: of the response.

  friend bool operator==(const CostSpec&, const CostSpec&) = default;
};

/// Another quota for one identity.
struct OverrideSpec {
  struct Value {
    std::string source;  ///< Empty: the rule's first.
    std::string value;
    friend bool operator==(const Value&, const Value&) = default;
  };
  std::vector<Value> identity;
  Quota quota;
  Position at;

  friend bool operator==(const OverrideSpec&, const OverrideSpec&) = default;
};

struct RuleSpec {
  std::string id;  ///< 1 to 64 of `A-Z a-z 0-9 . _ -`.
  MatchSpec match;
  Per per;
  Quota quota;
  CostSpec cost;
  std::optional<OnFailure> on_failure;
  Mode mode = Mode::kEnforce;
  bool announce = true;              ///< False: clients must not know of the rule.
  std::optional<DenialSpec> denial;  ///< The response to requests that this rule denies.
  std::vector<OverrideSpec> overrides;
  Position at;
  std::string limit = {};  ///< As the configuration has it: `1000/24h`. Empty if made by a program.

  friend bool operator==(const RuleSpec&, const RuleSpec&) = default;
};

struct Config {
  /// How Redis and its sentinels prove who they are, and this node to them.
  struct StoreTls {
    std::string ca_pem = {};           ///< Empty: the system's authorities.
    std::string certificate_pem = {};  ///< Of this node, with its chain; empty: none.
    std::string key_pem = {};
    std::string server_name = {};  ///< What certificates must be for; empty: the host of each.
    bool verify = true;
    friend bool operator==(const StoreTls&, const StoreTls&) = default;
  };
  /// As whom to ask sentinels; both empty: nobody.
  struct StoreSentinel {
    std::string user = {};
    std::string password = {};
    friend bool operator==(const StoreSentinel&, const StoreSentinel&) = default;
  };
  struct Store {
    /// Of the memory store; with Redis, of the one that `local` falls back to.
    std::size_t max_keys = 1'000'000;
    std::size_t max_list_bytes = 256u << 20;
    /// Of rules that name none, and of inline quotas. The memory store always answers; with Redis
    /// it is there wherever it is needed.
    std::optional<OnFailure> on_failure = std::nullopt;
    std::optional<redis::RedisUrl> redis = std::nullopt;  ///< Nothing: the memory store.
    std::string prefix = "tg:";                           ///< Of every key in Redis.
    Micros deadline = std::chrono::milliseconds{20};      ///< Of a decision.
    Micros connect_timeout = std::chrono::milliseconds{250};
    StoreTls tls = {};            ///< Where the url asks for TLS.
    StoreSentinel sentinel = {};  ///< Where it names sentinels.
    /// Among how many `local` divides a limit until Redis has told how many there are.
    int nodes = 1;
    friend bool operator==(const Store&, const Store&) = default;
  };
  struct Listen {
    ListenSpec api = "127.0.0.1:8081";
    ListenSpec admin = "127.0.0.1:9180";
    ListenSpec gateway = {};
    ListenSpec resp = {};
    friend bool operator==(const Listen&, const Listen&) = default;
  };
  struct Jwt {
    std::string hmac_secret;
    std::string public_key_pem;
    bool unverified = false;
    std::string issuer;
    std::string audience;
    bool require_exp = true;  ///< A token without `exp` counts as absent.
    friend bool operator==(const Jwt&, const Jwt&) = default;
  };
  struct Identity {
    /// How a request is treated in which a counted cookie has several values.
    enum class DuplicateCookies : std::uint8_t {
      kCountAll,  ///< Each value is charged.
      kReject,    ///< 400.
    };
    std::string hmac_key;  ///< Empty: random per process; with Redis, agreed through it.
    std::optional<Jwt> jwt;
    DuplicateCookies duplicate_cookies = DuplicateCookies::kCountAll;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  /// How HTTP frontends answer.
  struct Responses {
    enum class XReset : std::uint8_t { kDelta, kEpoch };
    /// Which clients of the gateway see who decided, and why. Callers of the API always do.
    enum class ShowDecidedBy : std::uint8_t { kTrusted, kAlways, kNever };
    bool ratelimit = true;          ///< `RateLimit` and `RateLimit-Policy`.
    bool ratelimit_legacy = false;  ///< `RateLimit-Limit`, `-Remaining`, `-Reset`.
    bool x_ratelimit = false;       ///< `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    XReset x_reset = XReset::kDelta;
    Micros retry_after_jitter{0};  ///< Up to so much is added to Retry-After.
    ShowDecidedBy decided_by = ShowDecidedBy::kTrusted;
    bool partition_key = false;  ///< RateLimit fields have `pk`, a hash of the counted key.
    /// The response to denied requests if neither the rule nor the route has a `denial`.
    std::optional<DenialSpec> denial = {};
    friend bool operator==(const Responses&, const Responses&) = default;
  };
  struct Api {
    bool inline_quotas = false;
    bool hidden_rules = false;  ///< Answers list shadow rules and rules with `announce: false`.
    friend bool operator==(const Api&, const Api&) = default;
  };
  struct Resp {
    bool throttle = true;  ///< CL.THROTTLE, whose callers bring their own quotas.
    friend bool operator==(const Resp&, const Resp&) = default;
  };
  /// Limits of what clients can make the process hold. Counts and sizes are per listener, unless
  /// they say otherwise.
  struct Limits {
    std::size_t connections = 20'000;  ///< On all reactors together.
    /// Open connections of one client address; 0: no limit. Trusted proxies have none.
    std::size_t connections_per_address = 10'000;
    /// Bytes of incomplete requests, of all connections of the process together.
    std::size_t buffer_bytes = 256u << 20;
    std::size_t header_bytes = 16u << 10;  ///< Request line and headers.
    std::size_t header_count = 100;
    std::size_t target_bytes = 8u << 10;  ///< Part of header_bytes; never more.
    std::size_t body_bytes = 1u << 20;
    Micros header_timeout = std::chrono::seconds{10};
    Micros body_timeout = std::chrono::seconds{10};  ///< Interval in which body_rate is checked.
    std::size_t body_rate = 500;                     ///< Least bytes per second of a body.
    Micros idle_timeout = std::chrono::seconds{75};
    Micros drain_timeout = std::chrono::seconds{10};
    /// Between the moment at which /readyz fails and that at which no connection is accepted any
    /// more: for balancers to look elsewhere.
    Micros drain_delay{0};
    friend bool operator==(const Limits&, const Limits&) = default;
  };
  /// How callers of the API, RESP and admin listeners authenticate.
  struct Access {
    std::vector<TokenSpec> tokens;
    /// Empty: every client certificate that is accepted has all rights.
    std::vector<CertificateSpec> certificates;
    friend bool operator==(const Access&, const Access&) = default;
  };
  struct Log {
    enum class Format : std::uint8_t { kText, kJson };
    enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };
    Format format = Format::kText;
    Level level = Level::kInfo;
    friend bool operator==(const Log&, const Log&) = default;
  };
  /// What is counted per decision beside the limits themselves.
  struct Metrics {
    enum class KeyNames : std::uint8_t { kHashed, kPlain };
    bool decisions = true;       ///< Counters by rule and outcome, and latency.
    std::size_t hot_keys = 100;  ///< How many each view reports; 0: none are counted.
    /// Whether reports show identities that are no secrets as they are.
    KeyNames key_names = KeyNames::kHashed;
    friend bool operator==(const Metrics&, const Metrics&) = default;
  };
  /// Privileges of the process that serves.
  struct Process {
    /// What happens when a thread makes a system call that is not on the allow-list.
    enum class Seccomp : std::uint8_t {
      kOff,   ///< There is no allow-list.
      kLog,   ///< The call succeeds, and the kernel logs it.
      kDeny,  ///< The call fails with EPERM.
      kKill,  ///< The process ends with SIGSYS.
    };
    std::optional<SystemUser> user = std::nullopt;  ///< Nothing: the user that started it.
    Seccomp seccomp = Seccomp::kOff;
    bool dumpable = false;  ///< Allows core dumps, and debuggers of the same user.
    friend bool operator==(const Process&, const Process&) = default;
  };
  /// How the paths of requests are read, by every frontend.
  struct Paths {
    bool ignore_case = false;
    EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
    friend bool operator==(const Paths&, const Paths&) = default;
  };
  struct ClientIp {
    ClientAddressPolicy policy;
    int ipv6_prefix = 64;
  };

  Store store;
  Listen listen;
  ClientIp client_ip;
  Identity identity;
  Paths paths;
  Responses responses;
  Api api;
  Resp resp;
  Access access;
  Limits limits;
  Log log;
  Metrics metrics;
  Process process;
  std::vector<MatchSpec> deny;
  std::vector<MatchSpec> exempt;
  bool exempt_preflights = false;  ///< CORS preflight requests pass uncounted.
  std::vector<RuleSpec> rules;
  GatewaySpec gateway;
  AccessLogSpec access_log;
  std::vector<RouteSpec> routes;
  std::vector<UpstreamSpec> upstreams;
};

/// Returns the value that `word` stands for in `process.seccomp`: off, log, deny or kill.
[[nodiscard]] std::optional<Config::Process::Seccomp> SeccompOf(std::string_view word) noexcept;

/// What reading a configuration gave. With any error there is no config.
struct ConfigReading {
  std::optional<Config> config;
  Problems problems;  ///< In the order of the file; errors and warnings.
  /// What was read for it, each once, whether it could be read or not: the configuration's own file
  /// first, if there is one, then included files and patterns, then those that `file:` values name.
  /// A change of any is one of the configuration.
  std::vector<FileSeen> files = {};
};

/// Where `${NAME}` is looked up; nothing: not set.
using Environment = std::optional<std::string> (*)(const std::string& name);
[[nodiscard]] std::optional<std::string> ProcessEnvironment(const std::string& name);

/// Whether the files that a configuration includes are read.
enum class Includes : std::uint8_t {
  kRead,
  kRefuse,  ///< `include` is an error, and no file is looked for.
};

/// Reads YAML. Reports all mistakes, not only the first. Never throws on any input; files above 16
/// MiB, nesting beyond 64 and aliases that unfold into more than a million nodes are refused, for
/// the configuration and all included files together. `file:` values and included files are read
/// relative to `folder`, those of an included file relative to its own.
[[nodiscard]] ConfigReading ParseConfig(std::string_view yaml, const std::string& folder = ".",
                                        Environment environment = ProcessEnvironment,
                                        Includes includes = Includes::kRead);
[[nodiscard]] ConfigReading LoadConfig(const std::string& file);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "base/tls_spec.hpp"
#include "config/files.hpp"
#include "config/gateway_spec.hpp"
#include "config/listen_spec.hpp"
#include "identity/client_address.hpp"
#include "identity/jwt.hpp"
#include "rules/denial_spec.hpp"
#include "rules/match_spec.hpp"
#include "rules/rule_spec.hpp"
#include "store/redis/redis_url.hpp"

namespace tidegate {

// A configuration as it was written: checked, but not yet compiled, which is the task of
// rules/rule_set.hpp. Its parts are plain values, which are equal if the files say the same.

/// A user and a group of this machine, as `process.user` names them.
struct SystemUser {
  /// The value of `process.user`: `NAME` or `NAME:GROUP`; either may be a number.
  std::string text;
  std::string name;  ///< The user's login name; empty if only a number is known.
  uid_t uid = 0;
  gid_t gid = 0;
  /// Where the groups of the process come from.
  enum class Groups : bool {
    kOfUser,   ///< The user's supplementary groups.
    kOnlyOne,  ///< `gid` alone, because `GROUP` is written.
  };
  Groups groups = Groups::kOfUser;

  friend bool operator==(const SystemUser&, const SystemUser&) = default;
};

struct Config {
  /// The credentials for sentinels; both empty: none.
  struct StoreSentinel {
    std::string user = {};
    std::string password = {};
    friend bool operator==(const StoreSentinel&, const StoreSentinel&) = default;
  };
  struct Store {
    /// The most keys in the memory store; with Redis, in the memory store that `local` uses.
    std::size_t max_keys = 1'000'000;
    std::size_t max_list_bytes = 256u << 20;
    /// For inline quotas and rules without their own. With Redis, a valid file sets it if needed.
    std::optional<OnFailure> on_failure = std::nullopt;
    std::optional<redis::RedisUrl> redis = std::nullopt;  ///< If absent, the memory store is used.
    std::string prefix = "tg:";                           ///< The beginning of every key in Redis.
    Micros deadline = std::chrono::milliseconds{20};      ///< How long a decision may take.
    Micros connect_timeout = std::chrono::milliseconds{250};
    TlsClientSpec tls = {};       ///< Used if the URL asks for TLS.
    StoreSentinel sentinel = {};  ///< Used if the URL names sentinels.
    int nodes = 1;  ///< Divides limits under `local` until Redis reports the number of nodes.
    friend bool operator==(const Store&, const Store&) = default;
  };
  /// Only listeners that the file names are opened.
  struct Listen {
    ListenSpec api = {};
    ListenSpec admin = {};
    ListenSpec gateway = {};
    ListenSpec resp = {};
    friend bool operator==(const Listen&, const Listen&) = default;
  };
  using Jwt = JwtVerifier::Options;
  struct Identity {
    /// What happens to a request in which a counted cookie has several values.
    enum class DuplicateCookies : std::uint8_t {
      kCountAll,  ///< Each value is charged.
      kReject,    ///< The request is answered with 400.
    };
    /// The key of all keyed hashes. Empty: random; with Redis, the nodes of a fleet agree on one.
    std::string hmac_key;
    std::optional<Jwt> jwt;
    DuplicateCookies duplicate_cookies = DuplicateCookies::kCountAll;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct Responses {
    enum class XReset : std::uint8_t { kDelta, kEpoch };
    /// Which clients see what decided about a request, and why. Callers of the API always do.
    enum class ShowDecidedBy : std::uint8_t { kTrusted, kAlways, kNever };
    bool ratelimit = true;          ///< Send `RateLimit` and `RateLimit-Policy`.
    bool ratelimit_legacy = false;  ///< Send `RateLimit-Limit`, `-Remaining`, `-Reset`.
    bool x_ratelimit = false;       ///< Send `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    XReset x_reset = XReset::kDelta;
    Micros retry_after_jitter{0};  ///< The most that is added to Retry-After.
    ShowDecidedBy decided_by = ShowDecidedBy::kTrusted;
    bool partition_key = false;  ///< Add `pk`, a hash of the counted key, to the RateLimit fields.
    /// The response to denied requests if neither the rule nor the route has a `denial`.
    std::optional<DenialSpec> denial = {};
    friend bool operator==(const Responses&, const Responses&) = default;
  };
  struct Api {
    bool inline_quotas = false;
    bool hidden_rules = false;  ///< API responses list rules that clients must not know of.
  };
  struct Resp {
    bool throttle = true;  ///< Serve CL.THROTTLE, whose callers bring their own quotas.
  };
  /// Limits on the resources that clients can use; per listener unless a comment says otherwise.
  struct Limits {
    std::size_t connections = 20'000;  ///< Open connections, on all reactors together.
    /// Open connections of one client address; 0: no limit. Trusted proxies are not limited.
    std::size_t connections_per_address = 10'000;
    /// Bytes of incomplete requests, of all connections of the process together.
    std::size_t buffer_bytes = 256u << 20;
    std::size_t header_bytes = 16u << 10;  ///< Request line and headers.
    std::size_t header_count = 100;
    std::size_t target_bytes = 8u << 10;  ///< The request target, which header_bytes includes.
    std::size_t body_bytes = 1u << 20;
    Micros header_timeout = std::chrono::seconds{10};
    Micros body_timeout = std::chrono::seconds{10};  ///< Interval in which body_rate is checked.
    std::size_t body_rate = 500;  ///< The lowest rate of a body, in bytes per second.
    Micros idle_timeout = std::chrono::seconds{75};
    Micros drain_timeout = std::chrono::seconds{10};
    Micros drain_delay{0};  ///< How long /readyz fails before connections are refused.
    friend bool operator==(const Limits&, const Limits&) = default;
  };
  /// How callers of the API, RESP and admin listeners authenticate.
  struct Access {
    std::vector<TokenSpec> tokens;
    /// The client certificates that have rights. If empty, every accepted one has all rights.
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
  /// What is recorded about decisions, apart from the limits themselves.
  struct Metrics {
    enum class KeyNames : std::uint8_t { kHashed, kPlain };
    bool decisions = true;  ///< Count decisions by rule and outcome, and measure latency.
    /// How many keys each list of hot keys has; 0: hot keys are not counted.
    std::size_t hot_keys = 100;
    /// Whether reports show identities that are not secret as hashes or as plain text.
    KeyNames key_names = KeyNames::kHashed;
    friend bool operator==(const Metrics&, const Metrics&) = default;
  };
  struct Process {
    /// What happens when a thread makes a system call that is not on the allow-list.
    enum class Seccomp : std::uint8_t {
      kOff,   ///< There is no allow-list.
      kLog,   ///< The call succeeds, and the kernel logs it.
      kDeny,  ///< The call fails with EPERM.
      kKill,  ///< The process ends with SIGSYS.
    };
    /// If absent, the user that started the process.
    std::optional<SystemUser> user = std::nullopt;
    Seccomp seccomp = Seccomp::kOff;
    bool dumpable = false;  ///< Allows core dumps, and debuggers of the same user.
    friend bool operator==(const Process&, const Process&) = default;
  };
  struct ClientIp {
    ClientAddressPolicy policy;
    int ipv6_prefix = 64;
  };

  Store store;
  Listen listen;
  ClientIp client_ip;
  Identity identity;
  PathPolicy paths;
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

  /// Returns the part that RuleSet compiles. It points into this Config.
  [[nodiscard]] RuleSetSpec rule_set() const noexcept {
    return {.rules = rules,
            .deny = deny,
            .exempt = exempt,
            .exempt_preflights = exempt_preflights,
            .paths = paths,
            .client_policy = client_ip.policy,
            .on_failure = store.on_failure.value_or(OnFailure::kOpen)};
  }
};

/// Returns the value of a word of `process.seccomp`: off, log, deny or kill.
[[nodiscard]] std::optional<Config::Process::Seccomp> SeccompOf(std::string_view word) noexcept;

/// Looks up `NAME` or `NAME:GROUP`; either may be a number. A number without a user needs a group.
/// The error is a message that names the unknown user or group.
[[nodiscard]] std::expected<SystemUser, std::string> FindSystemUser(std::string_view text);

/// The result of reading a configuration. With any error there is no config.
struct ConfigReading {
  std::optional<Config> config;
  Problems problems;  ///< Errors and warnings, in the order of the file.
  /// The files on which the configuration depends, each once, including unreadable ones: the main
  /// file, included files and patterns, and files that `file:` values name.
  std::vector<WatchedFile> files = {};
};

/// Returns the value of the environment variable `name`; nothing if it is not set.
using Environment = std::optional<std::string> (*)(const std::string& name);
[[nodiscard]] std::optional<std::string> ProcessEnvironment(const std::string& name);

/// Whether the files that a configuration includes are read.
enum class Includes : std::uint8_t {
  kRead,
  kRefuse,  ///< `include` is an error, and no file is looked for.
};

/// Reads YAML and reports all mistakes. Never throws. All files together may have 16 MiB, 64 levels
/// and a million nodes, aliases unfolded. Relative paths of `yaml` begin in `folder`, those of an
/// included file in its own folder.
[[nodiscard]] ConfigReading ParseConfig(std::string_view yaml, const std::string& folder = ".",
                                        Environment environment = ProcessEnvironment,
                                        Includes includes = Includes::kRead);
/// Reads the configuration file of a server. It is an error if the file opens no listener.
[[nodiscard]] ConfigReading LoadConfig(const std::string& file);

}  // namespace tidegate

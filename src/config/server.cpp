// SPDX-License-Identifier: Apache-2.0
// paths, responses, api, resp, limits, log, metrics, process: how the server runs.
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using Responses = Config::Responses;
using Limits = Config::Limits;
using Log = Config::Log;
using Metrics = Config::Metrics;
using Process = Config::Process;

constexpr auto kPathsFields = Fields({
    Bool<&PathPolicy::ignore_case>(
        "ignore_case",
        "Whether patterns match paths in any case, as upstreams such as Express and ASP.NET do. "
        "The upstream gets the path as the client spelt it."),
    OneOf<&PathPolicy::encoded_slashes>(
        "encoded_slashes", kEncodedSlashesWords,
        "What happens to a path with an encoded slash or backslash (`%2F`, `%5C`, `\\`): `reject` "
        "answers 400, because some servers read it as a slash; `match` forwards it, and patterns "
        "match it in both readings. A route can override it."),
});

constexpr std::array<Word, 3> kHeaderSets = {
    {{"ratelimit", 0}, {"ratelimit-legacy", 1}, {"x-ratelimit", 2}}};
constexpr std::array kHeaderSwitches = {&Responses::ratelimit, &Responses::ratelimit_legacy,
                                        &Responses::x_ratelimit};

void ReadHeaderSets(const ConfigValue& value, Responses& responses) {
  responses.ratelimit = responses.ratelimit_legacy = responses.x_ratelimit = false;
  value.EachItem([&](const ConfigValue& item) {
    const auto word = item.OneOf(kHeaderSets);
    if (!word) return;
    bool& wanted = responses.*kHeaderSwitches[static_cast<std::size_t>(*word)];
    if (wanted) item.Error("is listed twice");
    wanted = true;
  });
}

using XReset = Responses::XReset;
constexpr auto kResets = Words<XReset>({{"delta", XReset::kDelta}, {"epoch", XReset::kEpoch}});

using ShowDecidedBy = Responses::ShowDecidedBy;
constexpr auto kShowDecidedBy = Words<ShowDecidedBy>({{"trusted", ShowDecidedBy::kTrusted},
                                                      {"always", ShowDecidedBy::kAlways},
                                                      {"never", ShowDecidedBy::kNever}});

constexpr auto kResponsesFields = Fields({
    Custom<ReadHeaderSets>(
        "headers",
        ValueType{R"({"type": "array", "uniqueItems": true, "default": ["ratelimit"],
        "items": {"enum": ["ratelimit", "ratelimit-legacy", "x-ratelimit"]}})",
                  "a list of `ratelimit`, `ratelimit-legacy` and `x-ratelimit`"},
        "Which header fields responses have; `[]` for none.")
        .Otherwise("`[ratelimit]`"),
    OneOf<&Responses::x_reset>(
        "x_ratelimit_reset", kResets,
        "`X-RateLimit-Reset` as seconds from now (`delta`) or as Unix time (`epoch`)."),
    Duration<&Responses::retry_after_jitter>("retry_after_jitter", Micros{0}, hours{1},
                                             "The most random time that is added to `Retry-After`, "
                                             "so that clients do not return all at once."),
    OneOf<&Responses::decided_by>(
        "decided_by", kShowDecidedBy,
        "Which clients see `decided_by`, `reason` and `X-Tidegate-Decided-By`: clients of the "
        "gateway at addresses of `client_ip.trusted_proxies` (at `/v1/auth`, proxies on a 200, "
        "since they pass denials on), all, or none. Callers of the API always see them."),
    Bool<&Responses::partition_key>(
        "partition_key",
        "Whether RateLimit fields have `pk`, a keyed hash of the counted key. It is the same on "
        "all nodes that share `identity.hmac_key`."),
    Sub<&Responses::denial>(
        "denial", kDenialSection,
        "How denials look to clients, unless the rule or the route has its own `denial`.")
        .Otherwise("the problem document"),
});

constexpr auto kApiFields = Fields({
    Bool<&Config::Api::inline_quotas>("inline_quotas",
                                      "Whether callers may send their own quota with a request."),
    Bool<&Config::Api::hidden_rules>(
        "hidden_rules",
        "Whether the bodies of responses list shadow rules and rules with `announce: false`. A "
        "rule that the caller names is always listed; header fields never show these rules."),
});

constexpr auto kRespFields = Fields({
    Bool<&Config::Resp::throttle>(
        "throttle",
        "Whether `CL.THROTTLE` is supported. Its callers send their own quotas, and a key is kept "
        "until its quota is full again, which may take up to 71 years: allow it only if you trust "
        "all callers with the store's memory."),
});

/// Below 100 ms slow but honest clients would be cut off; above an hour nothing is protected.
constexpr Micros kLeastTimeout = milliseconds{100};
constexpr Micros kMostTimeout = hours{1};
/// Long enough for the paths of the API and of health checks.
constexpr std::int64_t kMinTarget = 64;

constexpr auto kLimitsFields = Fields({
    Integer<&Limits::connections>("connections", 1, 1'000'000,
                                  "The most open connections of each listener."),
    Integer<&Limits::connections_per_address>(
        "connections_per_address", 0, 1'000'000,
        "The most open connections of one client address (IPv6: of one network of "
        "`client_ip.ipv6_prefix`) at each listener except admin; 0: no limit. Addresses of "
        "`client_ip.trusted_proxies` have no limit, since one proxy carries many clients."),
    Size<&Limits::buffer_bytes>(
        "buffer_bytes", kMebibyte, kMebibyte << 16,
        "The most memory for incomplete requests, of all connections of the process together; at "
        "least the sum of `body_bytes` and `header_bytes`."),
    Size<&Limits::header_bytes>("header_bytes", kKibibyte, kMebibyte,
                                "The longest request line and header fields together."),
    Integer<&Limits::header_count>("header_count", 1, 128, "The most header fields of a request."),
    Size<&Limits::target_bytes>(
        "target_bytes", kMinTarget, kMebibyte,
        "The longest target of a request (path and query); at most `header_bytes`, which includes "
        "the target. The default is `header_bytes` if that is less."),
    Size<&Limits::body_bytes>(
        "body_bytes", 0, 64 * kMebibyte,
        "The longest body of a request to the API; the gateway has its own limit."),
    Duration<&Limits::header_timeout>(
        "header_timeout", kLeastTimeout, kMostTimeout,
        "The time for the whole head of a request, for the first byte of a connection, and for "
        "RESP clients to authenticate."),
    Duration<&Limits::body_timeout>("body_timeout", kLeastTimeout, kMostTimeout,
                                    "The interval over which `body_rate` is measured."),
    Size<&Limits::body_rate>(
        "body_rate", 0, kMebibyte,
        "The least bytes per second of a request's body, and of a response that a client reads."),
    Duration<&Limits::idle_timeout>(
        "idle_timeout", kLeastTimeout, kMostTimeout,
        "The longest idle time between two requests of one connection."),
    Duration<&Limits::drain_timeout>("drain_timeout", Micros{0}, minutes{10},
                                     "The time for open requests to finish when the server stops."),
    Duration<&Limits::drain_delay>("drain_delay", Micros{0}, minutes{10},
                                   "How long `/readyz` fails before the server stops accepting "
                                   "connections, so that balancers choose another server in time."),
});

void CheckLimits(const ConfigValue& section, Limits& limits) {
  const ConfigValue target_bytes = section["target_bytes"];
  if (!target_bytes.written()) {
    limits.target_bytes = std::min(limits.target_bytes, limits.header_bytes);
  } else if (limits.target_bytes > limits.header_bytes) {
    target_bytes.Error(
        "is more than `header_bytes`, which includes the request target; raise `header_bytes` to "
        "at least as much");
  }
  if (limits.buffer_bytes < limits.body_bytes + limits.header_bytes) {
    section.Error(
        "`buffer_bytes` is less than `body_bytes` and `header_bytes` together, so that a request "
        "of that size could never be read; raise `buffer_bytes`");
  }
}

constexpr auto kFormats =
    Words<Log::Format>({{"text", Log::Format::kText}, {"json", Log::Format::kJson}});
constexpr auto kLevels = Words<Log::Level>({{"debug", Log::Level::kDebug},
                                            {"info", Log::Level::kInfo},
                                            {"warning", Log::Level::kWarning},
                                            {"error", Log::Level::kError}});
constexpr auto kLogFields = Fields({
    OneOf<&Log::format>("format", kFormats,
                        "The format of log lines: `text` for people, `json` for machines."),
    OneOf<&Log::level>("level", kLevels, "The least severity that is logged."),
});

constexpr auto kKeyNames = Words<Metrics::KeyNames>(
    {{"hashed", Metrics::KeyNames::kHashed}, {"plain", Metrics::KeyNames::kPlain}});
constexpr auto kMetricsFields = Fields({
    Bool<&Metrics::decisions>("decisions",
                              "Whether decisions are counted by rule and outcome, and timed."),
    Integer<&Metrics::hot_keys>("hot_keys", 0, 1'000,
                                "How many keys each list of hot keys has (by requests, denials and "
                                "cost); 0: no hot keys are counted."),
    OneOf<&Metrics::key_names>("key_names", kKeyNames,
                               "Whether `GET /v1/hot` shows identities that are not secret, such "
                               "as addresses, unhashed (`plain`)."),
});

using Seccomp = Process::Seccomp;
constexpr auto kSeccompWords = Words<Seccomp>({{"off", Seccomp::kOff},
                                               {"log", Seccomp::kLog},
                                               {"deny", Seccomp::kDeny},
                                               {"kill", Seccomp::kKill}});

std::optional<SystemUser> ReadProcessUser(const ConfigValue& value) {
  const auto text = value.Text("a user, as in `tidegate` or `tidegate:adm`");
  if (!text) return std::nullopt;
  auto user = FindSystemUser(*text);
  if (!user) return value.Invalid(user.error());
  return *std::move(user);
}

constexpr auto kProcessFields = Fields({
    Value<&Process::user, ReadProcessUser>(
        "user",
        ValueType{R"({"type": ["string", "integer"]})", "`NAME` or `NAME:GROUP`; names or numbers"},
        "The user to switch to once all addresses are bound; needs a start as root.")
        .Otherwise("the user that started the process"),
    OneOf<&Process::seccomp>(
        "seccomp", kSeccompWords,
        "What happens to system calls that a server does not need: `off` allows them, `log` allows "
        "and logs them, `deny` fails them with EPERM, `kill` ends the process. The environment "
        "variable `TIDEGATE_SECCOMP` overrides this key."),
    Bool<&Process::dumpable>("dumpable",
                             "Whether debuggers of the same user and core dumps may see the memory "
                             "of the process, secrets included."),
});

/// The size of the buffer for the entry of a user or a group; a group's entry lists its members.
constexpr std::size_t kEntryBytes = 1u << 20;

/// Returns a user or group number. It is below 2^32 - 1, which the system reads as "no change".
std::optional<std::uint32_t> IdNumber(std::string_view text) noexcept {
  return ParseNumber<std::uint32_t>(text, 0, UINT32_MAX - 1);
}

std::optional<passwd> FindUser(const std::string& text, std::vector<char>& memory) {
  passwd entry{};
  passwd* found = nullptr;
  (void)getpwnam_r(text.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found == nullptr) {
    if (const auto number = IdNumber(text)) {
      (void)getpwuid_r(*number, &entry, memory.data(), memory.size(), &found);
    }
  }
  if (found == nullptr) return std::nullopt;
  return entry;
}

std::optional<gid_t> FindGroup(const std::string& text) {
  std::vector<char> memory(kEntryBytes);
  group entry{};
  group* found = nullptr;
  (void)getgrnam_r(text.c_str(), &entry, memory.data(), memory.size(), &found);
  if (found != nullptr) return entry.gr_gid;
  return IdNumber(text);
}

}  // namespace

constinit const Section<PathPolicy> kPathsSection("paths", kPathsFields);
constinit const Section<Responses> kResponsesSection("responses", kResponsesFields);
constinit const Section<Config::Api> kApiSection("api", kApiFields);
constinit const Section<Config::Resp> kRespSection("resp", kRespFields);
constinit const Section<Limits> kLimitsSection("limits", kLimitsFields, CheckLimits);
constinit const Section<Log> kLogSection("log", kLogFields);
constinit const Section<Metrics> kMetricsSection("metrics", kMetricsFields);
constinit const Section<Process> kProcessSection("process", kProcessFields);

std::optional<Process::Seccomp> SeccompOf(std::string_view word) noexcept {
  const auto* const found = std::ranges::find(kSeccompWords.words, word, &Word::word);
  if (found == kSeccompWords.words.end()) return std::nullopt;
  return static_cast<Seccomp>(found->value);
}

std::expected<SystemUser, std::string> FindSystemUser(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string user{text.substr(0, colon)};
  if (user.empty()) return std::unexpected("should be `NAME` or `NAME:GROUP`");
  SystemUser result;
  result.text = text;
  std::vector<char> memory(kEntryBytes);
  const auto entry = FindUser(user, memory);
  if (entry) {
    result.name = entry->pw_name;
    result.uid = entry->pw_uid;
    result.gid = entry->pw_gid;
  } else if (const auto number = IdNumber(user); !number) {
    return std::unexpected("there is no user " + Backticked(user) +
                           " on this machine; create it with `" +
                           "useradd --system --no-create-home " + user + "`, or name another");
  } else if (colon == std::string_view::npos) {
    return std::unexpected("no user of this machine has the number " + user +
                           ", so its group is unknown; write `" + user + ":GROUP`");
  } else {
    result.uid = *number;
  }
  if (colon != std::string_view::npos) {
    const std::string group{text.substr(colon + 1)};
    const auto gid = FindGroup(group);
    if (!gid) return std::unexpected("there is no group " + Backticked(group) + " on this machine");
    result.gid = *gid;
    result.groups = SystemUser::Groups::kOnlyOne;
  }
  if (result.uid == 0) {
    return std::unexpected("is root; name a user without privileges, or leave it out");
  }
  return result;
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
// upstreams: the servers behind the gateway, how they are chosen, checked and retried.
#include <algorithm>
#include <chrono>
#include <memory_resource>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/units.hpp"
#include "config/sections.hpp"
#include "identity/path.hpp"

namespace tidegate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Target = UpstreamSpec::Target;
using Balance = UpstreamSpec::Balance;
using Health = UpstreamSpec::Health;
using Ejection = UpstreamSpec::Ejection;
using Retries = UpstreamSpec::Retries;

/// The most targets of an upstream: the balancer looks at all of them for each request.
constexpr std::size_t kMaxTargets = 1'000;
constexpr std::size_t kMaxHealthPath = 2'048;

void ReadTarget(const ConfigValue& value, Target& target) {
  auto parsed = ReadTargetUrl(value);
  if (!parsed) return;
  parsed->weight = target.weight;
  target = *std::move(parsed);
}

constexpr ValueType kTargetUrlType{
    .schema = R"({"description": "http://host[:port] or https://host[:port]; no path.",
        "anyOf": [{"type": "string", "pattern": "^https?://[^/?#@]+$"}, {"$ref": "#/$defs/environment"}]})",
    .shown = "`http://host[:port]` or `https://host[:port]`",
    .name = "target_url"};
constexpr auto kTargetFields = Fields({
    Custom<ReadTarget>(
        "url", kTargetUrlType,
        "The server: a name or an address, IPv6 in brackets; the port is 80 or 443 by default.")
        .Required("needs a `url`, as in `http://127.0.0.1:9001`"),
    Integer<&Target::weight>("weight", 1, 1'000,
                             "The target's share of the requests, relative to the other targets."),
});
constexpr Section<Target> kTargetSection("target", kTargetFields);

void ReadTargets(const ConfigValue& value, UpstreamSpec& upstream) {
  if (value.items() > kMaxTargets) return value.Error("has more than 1,000 targets");
  std::set<std::tuple<bool, std::string, std::uint16_t>> listed;
  value.EachItemOrOne(
      "is empty; name at least one server, as in `http://127.0.0.1:9001`",
      [&](const ConfigValue& item) {
        Target target;
        if (item.is_map()) {
          ReadSection(item, kTargetSection, target);
        } else {
          ReadTarget(item, target);
        }
        if (target.host.empty()) return;
        if (!listed.emplace(target.tls, target.host, target.port).second) {
          return item.Error(
              "is listed twice; to send more requests to one server give it a `weight`");
        }
        upstream.targets.push_back(std::move(target));
      });
}

/// Reads a path in normal form, with an optional query.
std::optional<std::string> ReadHealthPath(const ConfigValue& value) {
  auto text = value.Text("a path, as in `/healthz`");
  if (!text) return std::nullopt;
  const std::string_view path = std::string_view{*text}.substr(0, text->find('?'));
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizePath(path, Slashes::kKeep, memory);
  const bool plain = IsPrintable(*text) && !text->contains('#');
  if (!normal || !plain || text->size() > kMaxHealthPath) {
    return value.Invalid(
        "should be a path of plain ASCII that begins with `/`, as in `/healthz` or "
        "`/healthz?full`");
  }
  if (*normal != path) {
    return value.Invalid("should be in normal form: " + Backticked(*normal) +
                         " is the path that would be requested");
  }
  return text;
}

void ReadHealthStatus(const ConfigValue& value, Health& health) {
  const auto text = value.Text("a status or a range of them, as in `200-399`");
  if (!text) return;
  const std::string_view all = *text;
  const std::size_t dash = all.find('-');
  const auto from = ParseNumber<int>(all.substr(0, dash), 200, 599);
  const auto to = dash == all.npos ? from : ParseNumber<int>(all.substr(dash + 1), 200, 599);
  if (!from || !to || *from > *to) {
    return value.Error("should be a status from 200 to 599, or a range of them, as in `200-399`");
  }
  health.status_from = *from;
  health.status_to = *to;
}

void CheckHealth(const ConfigValue& section, Health& health) {
  const ConfigValue timeout = section["timeout"];
  if (!timeout.written()) {
    health.timeout = std::min(health.timeout, health.interval);
  } else if (health.timeout > health.interval) {
    timeout.Error("is longer than `interval`: a check would begin before the previous one ended");
  }
}

constexpr auto kHealthFields = Fields({
    Value<&Health::path, ReadHealthPath>(
        "path",
        ValueType{R"json({"type": "string", "pattern": "^(/|.*\\$\\{)"})json",
                  "a path, perhaps with a query"},
        "The path that health checks request."),
    Value<&Health::host, ReadHostPort>("host", kNotEmptyType, "The Host header of health checks.")
        .Otherwise("the target's own"),
    Duration<&Health::interval>("interval", milliseconds{100}, hours{1},
                                "How often each target is checked."),
    Duration<&Health::timeout>("timeout", milliseconds{10}, minutes{1},
                               "How long a response may take; at most the interval.")
        .Otherwise("2s, or the interval if that is shorter"),
    Integer<&Health::healthy>("healthy", 1, 100,
                              "How many good responses in a row bring a target back."),
    Integer<&Health::unhealthy>("unhealthy", 1, 100,
                                "How many bad responses in a row take a target out."),
    Custom<ReadHealthStatus>(
        "status",
        ValueType{R"({"anyOf": [{"type": "integer", "minimum": 200, "maximum": 599},
        {"type": "string", "pattern": "^[2-5][0-9][0-9](-[2-5][0-9][0-9])?$"},
        {"$ref": "#/$defs/environment"}]})",
                  "a status, or a range"},
        "Which responses are good: a status from 200 to 599, or a range of them.")
        .Default("200-399"),
});
constexpr Section<Health> kHealthSection("health", kHealthFields, CheckHealth);

constexpr auto kEjectionFields = Fields({
    Integer<&Ejection::failures>("failures", 1, 1'000,
                                 "How many failures in a row take a target out: no connection, no "
                                 "response, or 502, 503, 504."),
    Duration<&Ejection::time>("time", milliseconds{100}, hours{1},
                              "How long a target is out the first time; each further time in a row "
                              "is longer by this time."),
    Integer<&Ejection::percent>(
        "percent", 1, 100,
        "The most targets that may be out at a time, in percent; the last target stays."),
});
constexpr Section<Ejection> kEjectionSection("ejection", kEjectionFields);

/// Reads the statuses that are retried: only those of a server that did not process the request,
/// because after any other response a second request could have its effect twice.
void ReadStatuses(const ConfigValue& value, Retries& retries) {
  std::vector<int>& statuses = retries.statuses;
  statuses.clear();
  value.EachItemOrOne("names no status; leave the key out", [&](const ConfigValue& item) {
    const auto status = item.Integer(200, 599);
    if (!status) return;
    if (*status < 502 || *status > 504) {
      return item.Error("should be 502, 503 or 504, but is " + Backticked(std::to_string(*status)));
    }
    if (std::ranges::find(statuses, *status) != statuses.end()) {
      return item.Error("is listed twice");
    }
    statuses.push_back(static_cast<int>(*status));
  });
  std::ranges::sort(statuses);
}

constexpr auto kRetryFields = Fields({
    Integer<&Retries::attempts>("attempts", 1, 10, "The most attempts after the first."),
    Integer<&Retries::percent>(
        "percent", 1, 100,
        "The most retries, in percent of the requests, once a reserve of a hundred retries is used "
        "up: when all targets fail, retries must not double their load."),
    Bool<&Retries::timeout>("timeout", "Whether to retry if no response began in time."),
    Custom<ReadStatuses>("statuses",
                         ValueType{R"({"anyOf": [{"enum": [502, 503, 504]},
        {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"enum": [502, 503, 504]}}]})",
                                   "any of 502, 503 and 504"},
                         "The statuses of responses after which to retry.")
        .Otherwise("none"),
});
constexpr Section<Retries> kRetrySection("retries", kRetryFields);

/// Reads a section, or for the word `off` sets its member `kSwitch` to 0.
template <auto kMember, const auto& kSection, auto kSwitch>
void ReadOrOff(const ConfigValue& value, UpstreamSpec& upstream) {
  if (!value.IsOff()) return ReadSection(value, kSection, upstream.*kMember);
  (upstream.*kMember).*kSwitch = 0;
}

constexpr auto kBalances = Words<Balance>(
    {{"round_robin", Balance::kRoundRobin}, {"least_requests", Balance::kLeastRequests}});

constexpr auto kUpstreamFields = Fields({
    Custom<ReadTargets>(
        "targets",
        ValueType{R"({"anyOf": [{"$ref": "#/$defs/target_url"},
        {"type": "array", "minItems": 1, "maxItems": 1000,
         "items": {"anyOf": [{"$ref": "#/$defs/target_url"}, {"$ref": "#/$defs/target"}]}}]})",
                  "a URL, or a list of 1 to 1,000 URLs and maps", &kTargetSection, &kTargetUrlType},
        "The servers, which all serve the same: `http://host[:port]`, "
        "`https://host[:port]`, or `{ url: ..., weight: 2 }`. Each once.")
        .Required("needs `targets`, as in `targets: [http://127.0.0.1:9001]`"),
    OneOf<&UpstreamSpec::balance>("balance", kBalances,
                                  "Which target gets a request: each in turn, or the target with "
                                  "the fewest open requests; both by weight."),
    Integer<&UpstreamSpec::max_requests>(
        "max_requests", 1, 1'000'000,
        "The most requests at the same time to one target, by this process.")
        .OrOff()
        .Default("off"),
    Integer<&UpstreamSpec::keep_alive>(
        "keep_alive", 0, 100'000,
        "The most idle connections that one reactor keeps to one target."),
    Duration<&UpstreamSpec::keep_alive_timeout>(
        "keep_alive_timeout", milliseconds{100}, hours{1},
        "How long an idle connection is kept. Should be less than the idle timeout of the targets, "
        "or requests are sent on a connection that the target is just closing."),
    Duration<&UpstreamSpec::connect_timeout>(
        "connect_timeout", milliseconds{10}, minutes{1},
        "The time to connect to a target. If the first packet is lost, connecting takes one second "
        "longer; if the second is lost too, three."),
    Duration<&UpstreamSpec::response_timeout>("response_timeout", milliseconds{10}, hours{24},
                                              "How long the head of the response may take."),
    Duration<&UpstreamSpec::idle_timeout>(
        "idle_timeout", milliseconds{100}, hours{24},
        "The longest time without a byte in either direction, for a body or a tunnel. This timeout "
        "also ends a tunnel that only one side has closed."),
    Bool<&UpstreamSpec::accept_bare_lf>(
        "accept_bare_lf",
        "Whether lines of responses may end with LF instead of CRLF, in heads and chunk lines. For "
        "old servers only: the gateway writes CRLF to clients. A CR without LF is never accepted."),
    Duration<&UpstreamSpec::resolve>("resolve", seconds{1}, hours{1},
                                     "How often names are looked up again."),
    Sub<&UpstreamSpec::health>("health", kHealthSection,
                               "Checks each target at intervals, whether there is traffic or not.")
        .OrOff()
        .Default("off"),
    Custom<ReadOrOff<&UpstreamSpec::ejection, kEjectionSection, &Ejection::failures>>(
        "ejection", kEjectionSection, "Takes targets out for a while if requests to them fail.")
        .OrOff()
        .Otherwise("on"),
    Custom<ReadOrOff<&UpstreamSpec::retries, kRetrySection, &Retries::attempts>>(
        "retries", kRetrySection,
        "Which requests are sent again, to another target if there is one.")
        .OrOff()
        .Otherwise("on"),
    Sub<&UpstreamSpec::tls>("tls", kUpstreamTlsSection, "TLS settings for `https://` targets."),
});

void CheckUpstream(const ConfigValue& section, UpstreamSpec& upstream) {
  if (!section["targets"].written() || upstream.targets.empty()) return;
  if (!section["tls"].written() || std::ranges::any_of(upstream.targets, &Target::tls)) return;
  section["tls"].Error(
      "has no effect, since no target begins with `https://`; write an `https://` target, or "
      "remove the key");
}

constexpr Section<UpstreamSpec> kUpstreamTable("upstream", kUpstreamFields, CheckUpstream);

}  // namespace

constinit const SectionInfo kUpstreamSection = kUpstreamTable;

void ReadUpstreams(const ConfigValue& value, Config& config) {
  std::unordered_map<std::string, Position> listed;
  value.EachEntry([&](const std::string& name, const ConfigValue& key, const ConfigValue& entry) {
    if (!IsId(name)) return key.Error(kIdGrammar);
    const auto [first, is_new] = listed.emplace(name, key.at());
    if (!is_new) {
      return key.Error("is the name of two upstreams; the first is on " +
                       LineOf(first->second, key.at()));
    }
    UpstreamSpec& upstream = config.upstreams.emplace_back();
    upstream.name = name;
    ReadSection(entry, kUpstreamTable, upstream);
  });
}

}  // namespace tidegate

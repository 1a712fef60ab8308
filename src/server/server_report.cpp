// SPDX-License-Identifier: Apache-2.0
#include "server/server_report.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "admin/override_json.hpp"
#include "admin/rule_json.hpp"
#include "server/server.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

json::string Text(std::string_view text) { return json::string(text.data(), text.size()); }

/// Decisions of some rules, by outcome and by who decided.
struct Counts {
  std::array<std::uint64_t, DecisionCounters::kOutcomes> outcomes{};
  std::array<std::uint64_t, kDecisionSources> sources{};

  void Add(const DecisionCounters& counters, std::uint32_t slot) {
    using Outcome = DecisionCounters::Outcome;
    counters.Each(slot, [&](Outcome outcome, DecidedBy decided_by, std::uint64_t count) {
      outcomes[static_cast<std::size_t>(outcome)] += count;
      sources[static_cast<std::size_t>(decided_by)] += count;
    });
  }
  [[nodiscard]] json::object OutcomesJson() const {
    json::object out;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      out[Text(DecisionCounters::Name(static_cast<DecisionCounters::Outcome>(i)))] = outcomes[i];
    }
    return out;
  }
  [[nodiscard]] json::object SourcesJson() const {
    json::object out;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      out[Text(Name(static_cast<DecidedBy>(i)))] = sources[i];
    }
    return out;
  }
};

/// Returns a histogram with cumulative buckets; the last one has no upper bound. `count(i)` and
/// `upper(i)` return the count and the upper bound of one bucket.
template <class Count, class Upper>
json::object Histogram(std::size_t buckets, double seconds, Count count, Upper upper) {
  json::array all;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= buckets; ++i) {
    sum += count(i);
    all.push_back(json::array{i == buckets ? json::value() : json::value(upper(i)), sum});
  }
  return {{"count", sum}, {"sum", seconds}, {"buckets", std::move(all)}};
}

std::string CostText(const CostSpec& cost) {
  switch (cost.kind) {
    case CostSpec::Kind::kFixed:
      return std::to_string(cost.fixed);
    case CostSpec::Kind::kHeader:
      return "header:" + cost.header;
    case CostSpec::Kind::kResponse:
      return "response:" + cost.header;
  }
  return {};
}

const char* Name(OnFailure policy) noexcept {
  switch (policy) {
    case OnFailure::kOpen:
      return "open";
    case OnFailure::kClosed:
      return "closed";
    case OnFailure::kLocal:
      return "local";
  }
  return "";
}

const char* ModeName(redis::RedisUrl::Mode mode) noexcept {
  switch (mode) {
    case redis::RedisUrl::Mode::kSingle:
      return "single";
    case redis::RedisUrl::Mode::kSentinel:
      return "sentinel";
    case redis::RedisUrl::Mode::kCluster:
      return "cluster";
  }
  return "";
}

using GuardList = std::vector<const Guard*>;

json::object RedisJson(const redis::RedisUrl& url, const GuardList& guards) {
  static constexpr std::array<const char*, 3> kBreaker = {"closed", "half_open", "open"};
  const auto sum = [&](redis::Count redis::ClientStats::*count) {
    std::uint64_t all = 0;
    for (const Guard* const guard : guards) all += (guard->redis_stats().*count).get();
    return all;
  };
  std::uint64_t breaker = 0;
  std::uint64_t hits = 0;
  double seconds = 0;
  for (const Guard* const guard : guards) {
    breaker = std::max(breaker, guard->redis_stats().breaker.get());
    hits += guard->stats().cache_hits.get();
    seconds += guard->redis_stats().latency.seconds();
  }
  using redis::LatencyHistogram;
  using Stats = redis::ClientStats;
  return {{"kind", "redis"},
          {"mode", ModeName(url.mode)},
          {"url", url.Shown()},
          {"connected", sum(&Stats::connected)},
          {"nodes", sum(&Stats::nodes)},
          {"breaker", kBreaker[std::min<std::uint64_t>(breaker, 2)]},
          {"waiting", sum(&Stats::waiting)},
          {"batches", sum(&Stats::batches)},
          {"calls", sum(&Stats::calls)},
          {"entries", sum(&Stats::entries)},
          {"cache_hits", hits},
          {"latency", Histogram(
                          LatencyHistogram::kBuckets, seconds,
                          [&](std::size_t i) {
                            std::uint64_t all = 0;
                            for (const Guard* const guard : guards) {
                              all += guard->redis_stats().latency.count(i);
                            }
                            return all;
                          },
                          &LatencyHistogram::UpperSeconds)}};
}

/// Adds the last problem of the first reactor; the others use the same Redis.
void AddLastError(const redis::Client& client, json::object& to) {
  if (client.problem().empty()) return;
  const auto age = std::chrono::steady_clock::now() - client.problem_at();
  to["last_error"] = json::object{{"message", client.problem()},
                                  {"age_ms", std::chrono::floor<milliseconds>(age).count()}};
}

json::object FailuresJson(const GuardList& guards) {
  json::object out;
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    std::uint64_t all = 0;
    for (const Guard* const guard : guards) {
      for (const auto& decided_by : guard->stats().failures) all += decided_by[reason].get();
    }
    out[Text(redis::Name(static_cast<redis::Reason>(reason)))] = all;
  }
  return out;
}

json::object MemoryJson(const StoreStats& stats) {
  return {{"tracked", stats.tracked},
          {"overflowed", stats.overflowed},
          {"reclaimed", stats.reclaimed},
          {"repaired", stats.repaired},
          {"list_bytes", stats.list_bytes}};
}

json::object DoorJson(const MetricsReport::Door& door) {
  return {{"door", door.name},
          {"connections", door.open},
          {"accepted", door.accepted},
          {"requests", door.requests},
          {"refused", door.refused},
          {"shed", std::accumulate(door.shed.begin(), door.shed.end(), std::uint64_t{0})}};
}

GuardList GuardsOf(const Server& server) {
  GuardList guards;
  for (const auto& worker : server.workers()) {
    if (worker->guard) guards.push_back(worker->guard.get());
  }
  return guards;
}

const OverrideTable& OverridesOf(const Server& server) {
  return *server.workers().front()->pipeline.overrides();
}

}  // namespace

std::string StatusJson(const Server& server) {
  const GuardList guards = GuardsOf(server);
  Counts counts;
  const auto slots = static_cast<std::uint32_t>(server.compiler().rule_slots().Names().size());
  double seconds = 0;
  std::uint64_t allowed_requests = 0;
  std::uint64_t denied_requests = 0;
  for (const auto& worker : server.workers()) {
    allowed_requests += worker->metrics.allowed_requests();
    denied_requests += worker->metrics.denied_requests();
    for (std::uint32_t slot = 0; slot < slots; ++slot) counts.Add(worker->metrics.counters(), slot);
    seconds += worker->metrics.latency().seconds();
  }
  json::object out{{"version", server.version()},
                   {"node", server.node()},
                   {"uptime_ms", std::chrono::floor<milliseconds>(server.uptime()).count()},
                   {"threads", server.workers().size()},
                   {"draining", server.not_ready()}};
  const FleetMember* const fleet = server.fleet();
  out["store"] = fleet != nullptr ? RedisJson(*server.config().store.redis, guards)
                                  : json::object{{"kind", "memory"}};
  if (fleet != nullptr) {
    AddLastError(server.workers().front()->guard->client(), out["store"].get_object());
  }
  out["memory"] = MemoryJson(server.store_stats());
  if (fleet != nullptr) {
    out["fleet"] = json::object{{"nodes", fleet->fleet().nodes.load()},
                                {"key_mismatches", fleet->fleet().strangers.load()}};
  }
  const ReloadStatus& reloads = server.reloads();
  out["config"] = json::object{{"rules", server.admin_context().snapshot().rules->rules().size()},
                               {"applied_ms", reloads.applied_at.load() * 1000},
                               {"reloads", reloads.applied.load()},
                               {"refused", reloads.refused.load()}};
  json::object overrides{{"count", OverridesOf(server).size()}};
  for (auto& member : AgeJson(server.admin_context().fleet_register)) {
    overrides[member.key()] = std::move(member.value());
  }
  out["overrides"] = std::move(overrides);
  out["requests"] = json::object{{"allowed", allowed_requests}, {"denied", denied_requests}};
  out["decisions"] = counts.OutcomesJson();
  out["decided_by"] = counts.SourcesJson();
  out["failures"] = FailuresJson(guards);
  out["latency"] = Histogram(
      DecisionLatency::kBuckets, seconds,
      [&](std::size_t i) {
        std::uint64_t all = 0;
        for (const auto& worker : server.workers()) all += worker->metrics.latency().count(i);
        return all;
      },
      &DecisionLatency::UpperSeconds);
  json::array doors;
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kGateway, ListenerId::kResp, ListenerId::kAdmin}) {
    if (!server.group(id).off()) doors.push_back(DoorJson(server.group(id).Stats()));
  }
  out["doors"] = std::move(doors);
  return json::serialize(out) + "\n";
}

std::string RulesJson(const Server& server) {
  const Snapshot& snapshot = server.admin_context().snapshot();
  std::map<std::string_view, std::size_t> given;  // Number of overrides by operators, by rule.
  const OverrideTable& table = OverridesOf(server);
  table.ForEach([&](const OverrideTable::Entry& entry) {
    const auto left = table.Left(entry);
    if (!left || *left > Micros{0}) ++given[entry.what.rule];
  });
  json::array rules;
  for (const Rule& rule : snapshot.rules->rules()) {
    Counts counts;
    for (const auto& worker : server.workers()) {
      counts.Add(worker->metrics.counters(), snapshot.SlotOf(&rule));
    }
    const Quota& quota = rule.quota;
    json::object one{{"rule", rule.id},
                     {"match", MatchJson(snapshot.rules->matches()[rule.number])},
                     {"per", rule.per.Text()},
                     {"algorithm", Text(tidegate::Name(quota.algorithm()))},
                     {"limit", rule.LimitOf(quota)},
                     {"quota", rule.TextOf(quota)}};
    const bool bucket =
        quota.algorithm() == Algorithm::kTokenBucket || quota.algorithm() == Algorithm::kGcra;
    if (bucket) one["burst"] = quota.capacity();
    one["capacity"] = quota.capacity();
    one["mode"] = rule.mode == Mode::kShadow ? "shadow" : "enforce";
    one["on_failure"] = Name(rule.on_failure);
    one["cost"] = CostText(rule.cost);
    one["overrides"] = given[rule.id];
    one["configured_overrides"] = rule.overrides.size();
    one["decisions"] = counts.OutcomesJson();
    rules.push_back(std::move(one));
  }
  return json::serialize(json::object{{"rules", std::move(rules)}}) + "\n";
}

std::string HotJson(const Server& server, std::size_t most) {
  std::vector<std::shared_ptr<const HotReport>> parts;
  for (const auto& worker : server.workers()) parts.push_back(worker->metrics.hot());
  const HotReport report = Merge(parts, most);
  const std::vector<std::string> names = server.compiler().rule_slots().Names();
  const Snapshot& snapshot = server.admin_context().snapshot();
  const bool plain = snapshot.key_names == Config::Metrics::KeyNames::kPlain;
  const auto list = [&](HotBy by) {
    const HotList& hot = report.of(by);
    json::array keys;
    for (const HotKey& key : hot.keys) {
      keys.push_back(json::object{
          {"rule", key.slot < names.size() ? names[key.slot] : names.front()},
          {"key", plain ? key.identity : snapshot.rules->identifier().Veiled(key.identity)},
          {"count", key.count},
          {"error", key.error}});
    }
    // A request that several rules decide is in the counts of several keys, and is one request.
    const std::uint64_t total = by == HotBy::kRequests ? report.requests : hot.total;
    return json::object{{"total", total}, {"error", hot.error}, {"keys", std::move(keys)}};
  };
  const json::object out{{"window_ms", report.span.count()},
                         {"names", plain ? "plain" : "hashed"},
                         {"requests", list(HotBy::kRequests)},
                         {"denials", list(HotBy::kDenials)},
                         {"cost", list(HotBy::kCost)}};
  return json::serialize(out) + "\n";
}

}  // namespace tidegate

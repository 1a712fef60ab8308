// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <numeric>

#include "admin/report_json.hpp"
#include "core/quota_scale.hpp"
#include "server/server.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

/// Numbers of decisions of some rules, by outcome and by decision source.
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
};

/// Returns `counts` as a JSON object with the names of the enum's values, which `name` returns.
template <class Enum, std::size_t N>
json::object ByName(const std::array<std::uint64_t, N>& counts,
                    std::string_view (&name)(Enum) noexcept) {
  json::object out;
  for (std::size_t i = 0; i < N; ++i) out[JsonText(name(static_cast<Enum>(i)))] = counts[i];
  return out;
}

json::object OutcomesJson(const Counts& counts) {
  return ByName<DecisionCounters::Outcome>(counts.outcomes, DecisionCounters::Name);
}

/// Returns the sum of `get(part)` over all parts.
template <class Parts, class Get>
std::uint64_t Sum(const Parts& parts, Get get) {
  std::uint64_t sum = 0;
  for (const auto& part : parts) sum += get(*part);
  return sum;
}

/// Returns the sum of histograms of type T, with cumulative buckets; the last one has no upper
/// bound. `get(part)` returns the histogram of one of `parts`.
template <class T, class Parts, class Get>
json::object HistogramJson(const Parts& parts, Get get) {
  json::array buckets;
  std::uint64_t count = 0;
  double seconds = 0;
  for (std::size_t i = 0; i <= T::kBuckets; ++i) {
    count += Sum(parts, [&](const auto& part) { return get(part).count(i); });
    buckets.push_back(
        json::array{i == T::kBuckets ? json::value() : json::value(T::UpperSeconds(i)), count});
  }
  for (const auto& part : parts) seconds += get(*part).seconds();
  return {{"count", count}, {"sum", seconds}, {"buckets", std::move(buckets)}};
}

std::string CostText(const CostSpec& cost) {
  if (cost.kind == CostSpec::Kind::kFixed) return std::to_string(cost.fixed);
  return (cost.kind == CostSpec::Kind::kHeader ? "header:" : "response:") + cost.header;
}

using RedisStoreList = std::vector<const RedisStore*>;

json::object RedisJson(const redis::RedisUrl& url, const RedisStoreList& stores) {
  static constexpr const char* kModes[] = {"single", "sentinel", "cluster"};
  static constexpr const char* kBreaker[] = {"closed", "half_open", "open"};
  const auto sum = [&](redis::Count redis::ClientStats::*count) {
    return Sum(stores, [&](const RedisStore& redis_store) {
      return (redis_store.redis_stats().*count).get();
    });
  };
  std::uint64_t breaker = 0;
  for (const RedisStore* const redis_store : stores) {
    breaker = std::max(breaker, redis_store->redis_stats().breaker.get());
  }
  using Stats = redis::ClientStats;
  return {{"kind", "redis"},
          {"mode", kModes[static_cast<std::size_t>(url.mode)]},
          {"url", url.Shown()},
          {"connected", sum(&Stats::connected)},
          {"nodes", sum(&Stats::nodes)},
          {"breaker", kBreaker[std::min<std::uint64_t>(breaker, 2)]},
          {"waiting", sum(&Stats::waiting)},
          {"batches", sum(&Stats::batches)},
          {"calls", sum(&Stats::calls)},
          {"entries", sum(&Stats::entries)},
          {"cache_hits",
           Sum(stores,
               [](const RedisStore& redis_store) { return redis_store.stats().cache_hits.get(); })},
          {"latency", HistogramJson<redis::LatencyHistogram>(
                          stores, [](const RedisStore& redis_store) -> const auto& {
                            return redis_store.redis_stats().latency;
                          })}};
}

/// Adds the last problem of the first reactor's client; the others use the same Redis.
void AddLastError(const redis::Client& client, json::object& to) {
  if (client.problem().empty()) return;
  const auto age = std::chrono::steady_clock::now() - client.problem_at();
  to["last_error"] = json::object{{"message", client.problem()},
                                  {"age_ms", std::chrono::floor<milliseconds>(age).count()}};
}

json::object FailuresJson(const RedisStoreList& stores) {
  std::array<std::uint64_t, redis::kReasons> failures{};
  for (const RedisStore* const redis_store : stores) {
    for (const auto& policy : redis_store->stats().failures) {
      for (std::size_t reason = 0; reason < failures.size(); ++reason) {
        failures[reason] += policy[reason].get();
      }
    }
  }
  return ByName<redis::Reason>(failures, redis::Name);
}

json::object MemoryJson(const StoreStats& stats) {
  return {{"tracked", stats.tracked},
          {"overflowed", stats.overflowed},
          {"reclaimed", stats.reclaimed},
          {"repaired", stats.repaired},
          {"list_bytes", stats.list_bytes}};
}

json::array ListenersJson(const Server& server) {
  json::array listeners;
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kGateway, ListenerId::kResp, ListenerId::kAdmin}) {
    if (server.group(id).off()) continue;
    const ListenerGroup::Stats stats = server.group(id).stats();
    listeners.push_back(json::object{
        {"listener", server.group(id).name()},
        {"connections", stats.open},
        {"accepted", stats.accepted},
        {"requests", stats.requests},
        {"refused", stats.refused},
        {"shed", std::accumulate(stats.shed.begin(), stats.shed.end(), std::uint64_t{0})}});
  }
  return listeners;
}

const OverrideTable& OverridesOf(const Server& server) {
  return *server.workers().front()->pipeline.overrides();
}

}  // namespace

std::string StatusJson(const Server& server) {
  const auto& workers = server.workers();
  RedisStoreList stores;
  Counts counts;
  const auto slots = static_cast<std::uint32_t>(server.compiler().rule_slots().Names().size());
  for (const auto& worker : workers) {
    if (worker->redis_store) stores.push_back(worker->redis_store.get());
    for (std::uint32_t slot = 0; slot < slots; ++slot) counts.Add(worker->metrics.counters(), slot);
  }
  json::object out{{"version", server.version()},
                   {"node", server.node()},
                   {"uptime_ms", std::chrono::floor<milliseconds>(server.uptime()).count()},
                   {"threads", workers.size()},
                   {"draining", server.not_ready()},
                   {"store", json::object{{"kind", "memory"}}},
                   {"memory", MemoryJson(server.store_stats())}};
  if (const FleetMember* const fleet = server.fleet()) {
    json::object store = RedisJson(*server.config().store.redis, stores);
    AddLastError(workers.front()->redis_store->client(), store);
    out["store"] = std::move(store);
    out["fleet"] = json::object{{"nodes", fleet->fleet().nodes.load()},
                                {"key_mismatches", fleet->fleet().key_mismatches.load()}};
  }
  const ReloadStatus& reloads = server.reloads();
  out["config"] = json::object{{"rules", server.admin_context().snapshot().rules->rules().size()},
                               {"applied_ms", reloads.applied_at.load() * 1000},
                               {"reloads", reloads.applied.load()},
                               {"refused", reloads.refused.load()}};
  json::object overrides{{"count", OverridesOf(server).size()}};
  AddAll(overrides, AgeJson(server.admin_context().shared_overrides));
  out["overrides"] = std::move(overrides);
  out["requests"] = json::object{
      {"allowed", Sum(workers, [](const Worker& w) { return w.metrics.allowed_requests(); })},
      {"denied", Sum(workers, [](const Worker& w) { return w.metrics.denied_requests(); })}};
  out["decisions"] = OutcomesJson(counts);
  out["decided_by"] = ByName<DecidedBy>(counts.sources, Name);
  out["failures"] = FailuresJson(stores);
  out["latency"] = HistogramJson<DecisionLatency>(
      workers, [](const Worker& worker) -> const auto& { return worker.metrics.latency(); });
  out["listeners"] = ListenersJson(server);
  return json::serialize(out) + "\n";
}

std::string RulesJson(const Server& server) {
  const Snapshot& snapshot = server.admin_context().snapshot();
  std::map<std::string_view, std::size_t> given;  // Number of overrides by operators, by rule.
  const OverrideTable& table = OverridesOf(server);
  table.ForEach([&](const OverrideTable::Entry& entry) {
    if (table.Left(entry) != Micros{0}) ++given[entry.what.rule];
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
                     {"per", rule.per.Text()}};
    AddQuota(one, rule, quota);
    if (IsBucket(quota.algorithm())) one["burst"] = quota.capacity();
    one["mode"] = JsonText(Name(rule.mode));
    one["on_failure"] = JsonText(Name(rule.on_failure));
    one["cost"] = CostText(rule.cost);
    one["overrides"] = given[rule.id];
    one["configured_overrides"] = rule.overrides.size();
    one["decisions"] = OutcomesJson(counts);
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
    // A request that several rules decide is counted for several keys, but it is one request.
    const std::uint64_t total = by == HotBy::kRequests ? report.requests : hot.total;
    return json::object{{"total", total}, {"error", hot.error}, {"keys", std::move(keys)}};
  };
  json::object out{{"window_ms", report.span.count()}, {"names", plain ? "plain" : "hashed"}};
  for (const HotBy by : {HotBy::kRequests, HotBy::kDenials, HotBy::kCost}) {
    out[JsonText(Name(by))] = list(by);
  }
  return json::serialize(out) + "\n";
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "limiter/redis_metrics.hpp"

#include <algorithm>
#include <expected>
#include <string>
#include <utility>

#include "core/quota_scale.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/key_names.hpp"

namespace tidegate {
namespace {

using redis::ClientStats;
using redis::Count;
using RedisStores = std::span<const RedisStore* const>;
using Type = MetricFamily::Type;

/// Adds what `get` returns for each store.
template <class Get>
double Sum(RedisStores stores, Get get) {
  std::uint64_t sum = 0;
  for (const RedisStore* const store : stores) sum += get(*store);
  return static_cast<double>(sum);
}

/// A metric and its member of Stats. A name that ends in `_total` means a counter, others a gauge.
template <class Stats>
struct Row {
  std::string_view name;
  std::string_view help;
  Count Stats::*count;

  [[nodiscard]] MetricFamily Family(double sum) const {
    return {name, help, name.ends_with("_total") ? Type::kCounter : Type::kGauge, {{sum}}};
  }
};
constexpr Row<ClientStats> kClientRows[] = {
    {"tidegate_redis_batches_total", "Batches sent to Redis.", &ClientStats::batches},
    {"tidegate_redis_batch_entries_total", "Distinct requests in batches.", &ClientStats::entries},
    {"tidegate_redis_batch_keys_total", "Distinct keys in batches.", &ClientStats::keys},
    {"tidegate_redis_calls_total", "Calls that batches answered.", &ClientStats::calls},
    {"tidegate_redis_late_batches_total", "Batches whose reply arrived after all deadlines.",
     &ClientStats::late},
    {"tidegate_redis_connections_total", "Connections made to Redis.", &ClientStats::connections},
    {"tidegate_redis_connected", "Open connections to Redis, over all reactors.",
     &ClientStats::connected},
    {"tidegate_redis_nodes", "Known Redis nodes, over all reactors.", &ClientStats::nodes},
    {"tidegate_redis_refreshes_total", "Requests to sentinels or a cluster for the topology.",
     &ClientStats::refreshes},
    {"tidegate_redis_switches_total", "Times that a master or slots moved to another node.",
     &ClientStats::switches},
    {"tidegate_redis_waiting", "Calls that wait for Redis now.", &ClientStats::waiting},
    {"tidegate_redis_failed_writes_total", "Writes that scripts could not carry out.",
     &ClientStats::failed_writes},
    {"tidegate_state_healed_total", "Keys whose content was not a valid state and was reset.",
     &ClientStats::healed},
    {"tidegate_state_repaired_total", "Stored times found impossibly far ahead, and repaired.",
     &ClientStats::repaired},
};
constexpr Row<RedisStoreStats> kStoreRows[] = {
    {"tidegate_cache_hits_total", "Denials from the denial cache, without a call to Redis.",
     &RedisStoreStats::cache_hits},
    {"tidegate_spans_total", "Requests with keys in several slots, applied in parts.",
     &RedisStoreStats::cross_slot_calls},
    {"tidegate_span_refunds_total", "Charges given back because another part was denied.",
     &RedisStoreStats::compensations},
    {"tidegate_span_refunds_lost_total", "Charges that could not be given back to Redis.",
     &RedisStoreStats::failed_compensations},
};

MetricFamily Errors(RedisStores stores) {
  MetricFamily family{"tidegate_redis_errors_total", "Error replies of Redis, by kind."};
  for (std::size_t kind = 0; kind < redis::kErrorKinds; ++kind) {
    const auto count = [&](const RedisStore& store) {
      return store.redis_stats().errors[kind].get();
    };
    family.Add(Sum(stores, count),
               {{"kind", std::string(redis::Name(static_cast<redis::ErrorKind>(kind)))}});
  }
  return family;
}

/// Returns the sum of a histogram over all stores; its values are divided by `unit`.
template <class Histogram>
MetricFamily Summed(RedisStores stores, std::string_view name, std::string_view help,
                    Histogram ClientStats::*histogram, double unit) {
  MetricFamily family{name, help, Type::kHistogram};
  const auto sum = [&](auto get) {
    return Sum(stores,
               [&](const RedisStore& store) { return get(store.redis_stats().*histogram); });
  };
  double count = 0;
  for (std::size_t bucket = 0; bucket <= Histogram::kBuckets; ++bucket) {
    count += sum([&](const Histogram& each) { return each.count(bucket); });
    const double upper = static_cast<double>(Histogram::Upper(bucket)) / unit;
    family.Add(count, {{"le", bucket == Histogram::kBuckets ? "+Inf" : NumberText(upper)}},
               "_bucket");
  }
  family.Add(sum([](const Histogram& each) { return each.sum(); }) / unit, {}, "_sum");
  family.Add(count, {}, "_count");
  return family;
}

double CountOf(RedisStores stores, DecidedBy decided_by, std::size_t reason) {
  return Sum(stores, [&](const RedisStore& store) {
    return store.stats().failures[static_cast<std::size_t>(decided_by)][reason].get();
  });
}

std::string ReasonName(std::size_t reason) {
  return std::string(redis::Name(static_cast<redis::Reason>(reason)));
}

/// Returns the decisions of one failure policy, under a name that other limiters use.
MetricFamily PolicyFamily(RedisStores stores, std::string_view name, std::string_view help,
                          DecidedBy decided_by) {
  MetricFamily family{name, help};
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    family.Add(CountOf(stores, decided_by, reason), {{"reason", ReasonName(reason)}});
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> RedisMetrics(RedisStores stores, const redis::Fleet& fleet) {
  std::vector<MetricFamily> families;
  for (const auto& row : kClientRows) {
    families.push_back(row.Family(Sum(
        stores, [&](const RedisStore& store) { return (store.redis_stats().*row.count).get(); })));
  }
  families.push_back(Errors(stores));
  families.push_back(Summed(stores, "tidegate_redis_latency_seconds",
                            "Time from a batch to its reply.", &ClientStats::latency, 1e9));
  families.push_back(Summed(stores, "tidegate_redis_batch_calls",
                            "Calls per batch, for batches that answered at least one.",
                            &ClientStats::batch_calls, 1));
  std::uint64_t breaker = 0;
  for (const RedisStore* const store : stores) {
    breaker = std::max(breaker, store->redis_stats().breaker.get());
  }
  families.push_back(Gauge("tidegate_redis_breaker_state",
                           "The worst of the reactors' breakers: 0 closed, 1 half-open, 2 open.",
                           breaker));
  families.push_back(
      Gauge("tidegate_redis_waiting_limit", "Calls that may wait for Redis, over all reactors.",
            Sum(stores, [](const RedisStore& store) { return store.most_waiting(); })));
  for (const auto& row : kStoreRows) {
    families.push_back(row.Family(
        Sum(stores, [&](const RedisStore& store) { return (store.stats().*row.count).get(); })));
  }
  families.push_back(Gauge("tidegate_fleet_nodes", "Nodes that share this Redis, as last reported.",
                           fleet.nodes.load()));
  families.push_back(Gauge("tidegate_fleet_key_mismatches",
                           "Nodes that hash identities with another key: every limit is multiplied "
                           "until they agree.",
                           fleet.key_mismatches.load()));
  return families;
}

std::vector<MetricFamily> FailureMetrics(RedisStores stores) {
  MetricFamily all{
      "tidegate_failures_total",
      "Decisions that failure policies made instead of the store, by `decided_by` and reason."};
  for (const DecidedBy decided_by : {DecidedBy::kOpen, DecidedBy::kClosed, DecidedBy::kLocal}) {
    for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
      all.Add(CountOf(stores, decided_by, reason),
              {{"decided_by", std::string(Name(decided_by))}, {"reason", ReasonName(reason)}});
    }
  }
  return {std::move(all),
          PolicyFamily(stores, "ratelimit_failclosed_total",
                       "Decisions that were refused because the store did not answer.",
                       DecidedBy::kClosed),
          PolicyFamily(stores, "ratelimit_failopen_total",
                       "Decisions that passed uncounted because the store did not answer.",
                       DecidedBy::kOpen)};
}

namespace {

using redis::Reply;

constexpr std::size_t kMostItems = 100;

/// Reads the fields and values of a hash, or the members and scores of a sorted set. Fields and
/// values alternate; members and scores alternate or come in pairs.
void ReadFields(const Reply& reply, bool list, StoredState& to) {
  const auto add = [&](std::string_view name, std::string_view value) {
    to.fields.push_back({std::string(name), std::string(value)});
  };
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    const Reply& element = reply.elements[i];
    if (list && element.elements.size() == 2) {
      add(element.elements[0].text, element.elements[1].text);
    } else if (i + 1 < reply.elements.size()) {
      add(element.text, reply.elements[i + 1].text);
      ++i;
    }
  }
}

}  // namespace

Result<StoredState> ReadStored(Store& store, const Charge& charge) {
  auto inspection = store.Inspect(charge);
  if (!inspection) return std::unexpected(std::move(inspection.error()));
  if (IsList(charge.quota->algorithm()) && inspection->state.size() > kMostItems) {
    inspection->state.resize(kMostItems);
  }
  return StoredState{inspection->tracked, std::move(inspection->state)};
}

void ReadStored(redis::Client& client, const Charge& charge,
                std::function<void(Result<StoredState>)> done) {
  const bool list = IsList(charge.quota->algorithm());
  std::string key;
  client.names().AppendKey(key, charge);
  std::string command;
  if (list) {
    const std::string last = std::to_string(kMostItems - 1);  // ZRANGE includes the last index.
    redis::AppendCommand(command, {"ZRANGE", key, "0", last, "WITHSCORES"});
  } else {
    redis::AppendCommand(command, {"HGETALL", key});
  }
  client.Run(redis::KeyNames::SlotOf(charge), command,
             [list, done = std::move(done)](const Reply* reply) {
               if (reply == nullptr || reply->is(Reply::Type::kError)) {
                 std::string why = "cannot read the stored state from Redis";
                 if (reply != nullptr) why += ": `" + std::string(reply->text.substr(0, 200)) + "`";
                 return done(std::unexpected(Error{ErrorCode::kNetwork, std::move(why)}));
               }
               StoredState state;
               ReadFields(*reply, list, state);
               state.tracked = !state.fields.empty();
               done(std::move(state));
             });
}

}  // namespace tidegate

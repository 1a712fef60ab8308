// SPDX-License-Identifier: Apache-2.0
#include "limiter/redis_metrics.hpp"

#include <algorithm>
#include <charconv>

namespace tidegate {
namespace {

using redis::ClientStats;
using redis::Count;
using Guards = std::span<const Guard* const>;
using Type = MetricFamily::Type;

template <class Get>
double Sum(Guards guards, Get get) {
  std::uint64_t sum = 0;
  for (const Guard* const guard : guards) sum += get(*guard).get();
  return static_cast<double>(sum);
}

struct Plain {
  std::string_view name;
  std::string_view help;
  Type type;
  Count ClientStats::*count;
};
constexpr Plain kPlain[] = {
    {"tidegate_redis_batches_total", "Batches sent to Redis.", Type::kCounter,
     &ClientStats::batches},
    {"tidegate_redis_batch_entries_total", "Distinct requests in batches.", Type::kCounter,
     &ClientStats::entries},
    {"tidegate_redis_batch_keys_total", "Distinct keys in batches.", Type::kCounter,
     &ClientStats::keys},
    {"tidegate_redis_calls_total", "Calls that batches answered.", Type::kCounter,
     &ClientStats::calls},
    {"tidegate_redis_late_batches_total", "Batches whose reply arrived after all deadlines.",
     Type::kCounter, &ClientStats::late},
    {"tidegate_redis_connections_total", "Connections made to Redis.", Type::kCounter,
     &ClientStats::connections},
    {"tidegate_redis_connected", "Open connections to Redis, over all reactors.", Type::kGauge,
     &ClientStats::connected},
    {"tidegate_redis_nodes", "Redis nodes that reactors know of, over all reactors.", Type::kGauge,
     &ClientStats::nodes},
    {"tidegate_redis_refreshes_total", "Requests to sentinels or a cluster for the topology.",
     Type::kCounter, &ClientStats::refreshes},
    {"tidegate_redis_switches_total", "Times that a master or slots moved to another node.",
     Type::kCounter, &ClientStats::switches},
    {"tidegate_redis_waiting", "Calls that wait for Redis now.", Type::kGauge,
     &ClientStats::waiting},
    {"tidegate_redis_failed_writes_total", "Writes that scripts could not carry out.",
     Type::kCounter, &ClientStats::failed_writes},
    {"tidegate_state_healed_total", "Keys whose content was not a valid state and was reset.",
     Type::kCounter, &ClientStats::healed},
    {"tidegate_state_repaired_total", "Stored times found impossibly far ahead, and repaired.",
     Type::kCounter, &ClientStats::repaired},
};

struct OfGuard {
  std::string_view name;
  std::string_view help;
  Count GuardStats::*count;
};
constexpr OfGuard kOfGuard[] = {
    {"tidegate_cache_hits_total", "Denials from the denial cache, without a call to Redis.",
     &GuardStats::cache_hits},
    {"tidegate_spans_total", "Requests with keys in several slots, applied in parts.",
     &GuardStats::spans},
    {"tidegate_span_refunds_total", "Charges given back because another part was denied.",
     &GuardStats::taken_back},
    {"tidegate_span_refunds_lost_total", "Charges that could not be given back to Redis.",
     &GuardStats::kept},
};

MetricFamily Errors(Guards guards) {
  MetricFamily family{
      "tidegate_redis_errors_total", "Error replies of Redis, by kind.", Type::kCounter, {}};
  for (std::size_t kind = 0; kind < redis::kErrorKinds; ++kind) {
    const double count = Sum(guards, [&](const Guard& guard) -> const Count& {
      return guard.redis_stats().errors[kind];
    });
    family.values.push_back(
        {count, {{"kind", std::string(redis::Name(static_cast<redis::ErrorKind>(kind)))}}});
  }
  return family;
}

std::string Text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// `upper` returns the upper bound of a bucket. Counts and `sum` are added over all guards.
template <class Histogram, class Upper, class Total>
MetricFamily Summed(Guards guards, MetricFamily family, Histogram ClientStats::*histogram,
                    Upper upper, Total total) {
  double count = 0;
  double sum = 0;
  for (std::size_t bucket = 0; bucket <= Histogram::kBuckets; ++bucket) {
    for (const Guard* const guard : guards) {
      count += static_cast<double>((guard->redis_stats().*histogram).count(bucket));
    }
    const bool last = bucket == Histogram::kBuckets;
    family.values.push_back(
        {count, {{"le", last ? "+Inf" : Text(static_cast<double>(upper(bucket)))}}, "_bucket"});
  }
  for (const Guard* const guard : guards) {
    sum += static_cast<double>(total(guard->redis_stats().*histogram));
  }
  family.values.push_back({sum, {}, "_sum"});
  family.values.push_back({count, {}, "_count"});
  return family;
}

MetricFamily Latency(Guards guards) {
  using redis::LatencyHistogram;
  return Summed(
      guards,
      {"tidegate_redis_latency_seconds", "Time from a batch to its reply.", Type::kHistogram, {}},
      &ClientStats::latency, &LatencyHistogram::UpperSeconds,
      [](const LatencyHistogram& histogram) { return histogram.seconds(); });
}

MetricFamily BatchCalls(Guards guards) {
  using redis::SizeHistogram;
  return Summed(guards,
                {"tidegate_redis_batch_calls",
                 "Calls per batch, for batches that answered at least one.",
                 Type::kHistogram,
                 {}},
                &ClientStats::batch_calls, &SizeHistogram::Upper,
                [](const SizeHistogram& histogram) { return histogram.sum(); });
}

MetricFamily Gauge(std::string_view name, std::string_view help, double value) {
  return {name, help, Type::kGauge, {{value}}};
}

double CountOf(Guards guards, DecidedBy decided_by, std::size_t reason) {
  std::uint64_t sum = 0;
  for (const Guard* const guard : guards) {
    sum += guard->stats().failures[static_cast<std::size_t>(decided_by)][reason].get();
  }
  return static_cast<double>(sum);
}

std::string ReasonName(std::size_t reason) {
  return std::string(redis::Name(static_cast<redis::Reason>(reason)));
}

/// The decisions of one failure policy, under a name that other limiters use.
MetricFamily PolicyFamily(Guards guards, std::string_view name, std::string_view help,
                          DecidedBy decided_by) {
  MetricFamily family{name, help, Type::kCounter, {}};
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    family.values.push_back(
        {CountOf(guards, decided_by, reason), {{"reason", ReasonName(reason)}}});
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> RedisMetrics(Guards guards, const redis::Fleet& fleet) {
  std::vector<MetricFamily> families;
  for (const Plain& plain : kPlain) {
    const double sum = Sum(guards, [&](const Guard& guard) -> const Count& {
      return guard.redis_stats().*plain.count;
    });
    families.push_back({plain.name, plain.help, plain.type, {{sum}}});
  }
  families.push_back(Errors(guards));
  families.push_back(Latency(guards));
  families.push_back(BatchCalls(guards));
  std::uint64_t breaker = 0;
  std::size_t most_waiting = 0;
  for (const Guard* const guard : guards) {
    most_waiting += guard->most_waiting();
    breaker = std::max(breaker, guard->redis_stats().breaker.get());
  }
  families.push_back(Gauge("tidegate_redis_breaker_state",
                           "The worst of the reactors' breakers: 0 closed, 1 half-open, 2 open.",
                           static_cast<double>(breaker)));
  families.push_back(Gauge("tidegate_redis_waiting_limit",
                           "Calls that may wait for Redis, over all reactors.",
                           static_cast<double>(most_waiting)));
  for (const OfGuard& each : kOfGuard) {
    const double sum =
        Sum(guards, [&](const Guard& guard) -> const Count& { return guard.stats().*each.count; });
    families.push_back({each.name, each.help, Type::kCounter, {{sum}}});
  }
  families.push_back(Gauge("tidegate_fleet_nodes", "Nodes that share this Redis, as last reported.",
                           static_cast<double>(fleet.nodes.load())));
  families.push_back(Gauge("tidegate_fleet_key_mismatches",
                           "Nodes that hash identities with another key: every limit is multiplied "
                           "until they agree.",
                           static_cast<double>(fleet.strangers.load())));
  return families;
}

std::vector<MetricFamily> FailureMetrics(Guards guards) {
  MetricFamily all{"tidegate_failures_total",
                   "Decisions that failure policies made instead of the store, by who "
                   "decided and why.",
                   Type::kCounter,
                   {}};
  for (const DecidedBy decided_by : {DecidedBy::kOpen, DecidedBy::kClosed, DecidedBy::kLocal}) {
    for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
      all.values.push_back(
          {CountOf(guards, decided_by, reason),
           {{"decided_by", std::string(Name(decided_by))}, {"reason", ReasonName(reason)}}});
    }
  }
  return {std::move(all),
          PolicyFamily(guards, "ratelimit_failclosed_total",
                       "Decisions that were refused because the store did not answer.",
                       DecidedBy::kClosed),
          PolicyFamily(guards, "ratelimit_failopen_total",
                       "Decisions that passed uncounted because the store did not answer.",
                       DecidedBy::kOpen)};
}

}  // namespace tidegate

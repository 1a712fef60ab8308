// SPDX-License-Identifier: Apache-2.0
#include "telemetry/decision_metrics.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace tidegate {

DecisionMetrics::DecisionMetrics(net::Timers& timers, const Options& options)
    : options_(options),
      hot_keys_(options.hot_keys == 0 ? nullptr
                                      : std::make_unique<HotKeys>(timers, options.hot_keys)) {}

std::shared_ptr<const HotReport> DecisionMetrics::hot() const {
  static const auto kNone = std::make_shared<const HotReport>();
  return hot_keys_ == nullptr ? kNone : hot_keys_->Published();
}

std::string_view DecisionCounters::Name(Outcome outcome) noexcept {
  static constexpr std::string_view kNames[kOutcomes] = {
      "allowed", "denied", "shadow_allowed", "shadow_denied", "banned", "exempted"};
  return kNames[static_cast<std::size_t>(outcome)];
}

void DecisionLatency::Add(std::chrono::nanoseconds took, std::uint64_t times) noexcept {
  const auto nanoseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count(), 0));
  const std::uint64_t micros = (nanoseconds + 999) / 1000;
  // 0 and 1 us belong to the first bucket, 2 us to the second, 3 and 4 us to the third.
  const std::size_t bucket =
      micros <= 1 ? 0 : std::min<std::size_t>(std::bit_width(micros - 1), kBuckets);
  const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(counts_[bucket], times);
  add(nanoseconds_, nanoseconds * times);
}

namespace {

using Reactors = std::span<const DecisionMetrics* const>;
using Type = MetricFamily::Type;

constexpr std::size_t kRanks = 10;
constexpr std::size_t kMost = 1000;  ///< No reactor lists more keys, so no bound is lost.

MetricFamily Decisions(Reactors reactors, const std::vector<std::string>& rule_names) {
  using Outcome = DecisionCounters::Outcome;
  MetricFamily family{"tidegate_decisions_total", "Decisions by rule, outcome and decided_by."};
  for (std::uint32_t slot = 0; slot < rule_names.size(); ++slot) {
    std::map<std::pair<Outcome, DecidedBy>, std::uint64_t> sums;
    for (const DecisionMetrics* const reactor : reactors) {
      reactor->counters().Each(slot,
                               [&](Outcome outcome, DecidedBy decided_by, std::uint64_t count) {
                                 sums[{outcome, decided_by}] += count;
                               });
    }
    for (const auto& [cell, sum] : sums) {
      family.Add(sum, {{"rule", rule_names[slot]},
                       {"outcome", std::string(DecisionCounters::Name(cell.first))},
                       {"decided_by", std::string(Name(cell.second))}});
    }
  }
  return family;
}

MetricFamily Latency(Reactors reactors) {
  MetricFamily family{"tidegate_decision_seconds",
                      "Time from a frontend's call to its answer; calls that are answered at once "
                      "are sampled.",
                      Type::kHistogram};
  std::uint64_t count = 0;
  double seconds = 0;
  for (std::size_t bucket = 0; bucket <= DecisionLatency::kBuckets; ++bucket) {
    for (const DecisionMetrics* const reactor : reactors) {
      count += reactor->latency().count(bucket);
    }
    const bool last = bucket == DecisionLatency::kBuckets;
    family.Add(count, {{"le", last ? "+Inf" : NumberText(DecisionLatency::UpperSeconds(bucket))}},
               "_bucket");
  }
  for (const DecisionMetrics* const reactor : reactors) seconds += reactor->latency().seconds();
  family.Add(seconds, {}, "_sum");
  family.Add(count, {}, "_count");
  return family;
}

}  // namespace

std::vector<MetricFamily> DecisionFamilies(Reactors reactors,
                                           const std::vector<std::string>& rule_names) {
  std::vector<std::shared_ptr<const HotReport>> parts;
  for (const DecisionMetrics* const reactor : reactors) parts.push_back(reactor->hot());
  const HotReport report = Merge(parts, kMost);
  const double seconds = std::chrono::duration<double>(report.span).count();
  const auto rate = [&](std::uint64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  MetricFamily rates{"tidegate_hot_key_rate",
                     "Upper bound of the n-th hottest key's rate per second, over the last 10 to "
                     "20 s.",
                     Type::kGauge};
  MetricFamily errors{"tidegate_hot_key_error_rate",
                      "Upper bound of the rate per second of every key that is not listed.",
                      Type::kGauge};
  for (std::size_t i = 0; i < kHotLists; ++i) {
    const HotList& list = report.by[i];
    const std::string by(Name(static_cast<HotBy>(i)));
    for (std::size_t rank = 0; rank < std::min(kRanks, list.keys.size()); ++rank) {
      rates.Add(rate(list.keys[rank].count), {{"by", by}, {"rank", std::to_string(rank + 1)}});
    }
    errors.Add(rate(list.error), {{"by", by}});
  }
  return {Decisions(reactors, rule_names), Latency(reactors), std::move(rates), std::move(errors)};
}

}  // namespace tidegate

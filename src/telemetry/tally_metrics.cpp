// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tally_metrics.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>

namespace tidegate {
namespace {

using Tallies = std::span<const Tally* const>;
using Type = MetricFamily::Type;

constexpr std::size_t kRanks = 10;
constexpr std::size_t kMost = 1000;  ///< As many as any reactor lists: no bound is lost.
constexpr std::string_view kViews[kHotViews] = {"requests", "denials", "cost"};

std::string Text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

MetricFamily Latency(Tallies tallies) {
  MetricFamily family{"tidegate_decision_seconds",
                      "From a door's question to its answer; of those answered at once a sample.",
                      Type::kHistogram,
                      {}};
  double count = 0;
  double seconds = 0;
  for (std::size_t bucket = 0; bucket <= DecisionLatency::kBuckets; ++bucket) {
    for (const Tally* const tally : tallies) {
      count += static_cast<double>(tally->latency().count(bucket));
    }
    const bool last = bucket == DecisionLatency::kBuckets;
    family.values.push_back(
        {count, {{"le", last ? "+Inf" : Text(DecisionLatency::UpperSeconds(bucket))}}, "_bucket"});
  }
  for (const Tally* const tally : tallies) seconds += tally->latency().seconds();
  family.values.push_back({seconds, {}, "_sum"});
  family.values.push_back({count, {}, "_count"});
  return family;
}

}  // namespace

std::vector<MetricFamily> TallyMetrics(Tallies tallies) {
  std::vector<std::shared_ptr<const HotReport>> parts;
  for (const Tally* const tally : tallies) parts.push_back(tally->hot());
  const HotReport report = Merge(parts, kMost);
  const double seconds = std::chrono::duration<double>(report.span).count();
  const auto rate = [&](std::uint64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  MetricFamily rates{"tidegate_hot_key_rate",
                     "Per second of the n-th hottest key, at most, over the last 10 to 20 s.",
                     Type::kGauge,
                     {}};
  MetricFamily errors{"tidegate_hot_key_error_rate",
                      "No key that the report does not list has more per second.",
                      Type::kGauge,
                      {}};
  for (std::size_t view = 0; view < kHotViews; ++view) {
    const HotList& list = report.by[view];
    const std::string by(kViews[view]);
    for (std::size_t rank = 0; rank < std::min(kRanks, list.keys.size()); ++rank) {
      rates.values.push_back(
          {rate(list.keys[rank].count), {{"by", by}, {"rank", std::to_string(rank + 1)}}});
    }
    errors.values.push_back({rate(list.error), {{"by", by}}});
  }
  return {Latency(tallies), std::move(rates), std::move(errors)};
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "server/failure_metrics.hpp"

#include <string>

namespace tidegate {
namespace {

using Guards = std::span<const Guard* const>;
using Type = MetricFamily::Type;

double CountOf(Guards guards, Rung rung, std::size_t reason) {
  std::uint64_t sum = 0;
  for (const Guard* const guard : guards) {
    sum += guard->stats().failures[static_cast<std::size_t>(rung)][reason].get();
  }
  return static_cast<double>(sum);
}

std::string ReasonName(std::size_t reason) {
  return std::string(redis::Name(static_cast<redis::Reason>(reason)));
}

/// Of one rung, under the name that those who know it from elsewhere look for.
MetricFamily OfRung(Guards guards, std::string_view name, std::string_view help, Rung rung) {
  MetricFamily family{name, help, Type::kCounter, {}};
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    family.values.push_back({CountOf(guards, rung, reason), {{"reason", ReasonName(reason)}}});
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> FailureMetrics(Guards guards) {
  MetricFamily all{"tidegate_failures_total",
                   "Decisions that failure policies made instead of the store, by the rung that "
                   "answered and why.",
                   Type::kCounter,
                   {}};
  for (const Rung rung : {Rung::kOpen, Rung::kClosed, Rung::kLocal}) {
    for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
      all.values.push_back({CountOf(guards, rung, reason),
                            {{"rung", std::string(Name(rung))}, {"reason", ReasonName(reason)}}});
    }
  }
  return {std::move(all),
          OfRung(guards, "ratelimit_failclosed_total",
                 "Decisions that were refused since the store did not answer.", Rung::kClosed),
          OfRung(guards, "ratelimit_failopen_total",
                 "Decisions that passed uncounted since the store did not answer.", Rung::kOpen)};
}

}  // namespace tidegate

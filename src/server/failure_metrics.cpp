// SPDX-License-Identifier: Apache-2.0
#include "server/failure_metrics.hpp"

#include <string>

namespace tidegate {
namespace {

using Guards = std::span<const Guard* const>;
using Type = MetricFamily::Type;

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
                       "Decisions that were refused since the store did not answer.",
                       DecidedBy::kClosed),
          PolicyFamily(guards, "ratelimit_failopen_total",
                       "Decisions that passed uncounted since the store did not answer.",
                       DecidedBy::kOpen)};
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "virtual_time.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace tidegate::figures {
namespace {

constexpr double kSecond = 1e6;
constexpr std::uint64_t kSeed = 20;

/// Returns the number of entries or leases to store: one more than the limit, because a debit may
/// add one.
std::uint32_t Room(const Quota& quota) { return static_cast<std::uint32_t>(quota.limit() + 1); }

}  // namespace

Time At(double seconds) noexcept { return kZero + Micros{std::llround(seconds * kSecond)}; }
double Seconds(Time time) noexcept { return Seconds(time - kZero); }
double Seconds(Micros time) noexcept { return static_cast<double>(time.count()) / kSecond; }

Quota MakeQuota(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

std::vector<Point> InLastPeriod(std::span<const Admitted> admitted, Micros period) {
  struct Change {
    Time at;
    std::int64_t units;
  };
  std::vector<Change> changes;
  for (const Admitted& a : admitted) {
    changes.push_back({a.at, a.units});
    changes.push_back({a.at + period, -a.units});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::vector<Point> stairs;
  std::int64_t inside = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    inside += changes[i].units;
    // Units that leave and units that come at the same moment are one change.
    if (i + 1 < changes.size() && changes[i + 1].at == changes[i].at) continue;
    stairs.push_back({Seconds(changes[i].at), static_cast<double>(inside)});
  }
  return stairs;
}

std::int64_t FullestWindow(std::span<const Admitted> admitted, Micros period) {
  double most = 0;
  for (const Point& p : InLastPeriod(admitted, period)) most = std::max(most, p.y);
  return std::llround(most);
}

std::vector<Time> PoissonArrivals(double rate, double seconds) {
  std::mt19937_64 random(kSeed);
  std::vector<Time> arrivals;
  double time = 0;
  for (;;) {
    const double chance = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
    time -= std::log(chance) / rate;
    if (time >= seconds) return arrivals;
    arrivals.push_back(At(time));
  }
}

LogKey::LogKey(const Quota& quota)
    : quota_(quota), memory_(Room(quota)), log_(memory_.data(), Room(quota)) {}

Outcome LogKey::Step(std::int64_t cost, std::int64_t count, Time now) {
  const auto plan = sliding_log::Step(log_, quota_, cost, count, now);
  if (plan.outcome.effect != Effect::kNone) sliding_log::Commit(log_, quota_, plan.change);
  return plan.outcome;
}

Outcome LogKey::Debit(std::int64_t units, Time now) {
  const auto plan = sliding_log::Debit(log_, quota_, units, now);
  sliding_log::Commit(log_, quota_, plan.change);
  return plan.outcome;
}

Outcome LogKey::Refund(std::int64_t units, Time charged_at, Time now) {
  return sliding_log::Refund(log_, quota_, units, charged_at, now);
}

LeaseKey::LeaseKey(const Quota& quota)
    : quota_(quota), memory_(Room(quota)), leases_(memory_.data(), Room(quota)) {}

Outcome LeaseKey::Acquire(std::uint64_t id, std::int64_t cost, Time now) {
  const auto plan = concurrency::Acquire(leases_, quota_, {0, id}, cost, 1, now);
  if (plan.outcome.effect != Effect::kNone) {
    concurrency::Commit(leases_, quota_, plan.change, now);
  }
  return plan.outcome;
}

Outcome LeaseKey::Renew(std::uint64_t id, Time now) {
  const auto plan = concurrency::Renew(leases_, quota_, {0, id}, now);
  if (plan.outcome.effect != Effect::kNone) {
    concurrency::Commit(leases_, quota_, plan.change, now);
  }
  return plan.outcome;
}

Outcome LeaseKey::Release(std::uint64_t id, Time now) {
  return concurrency::Release(leases_, quota_, {0, id}, now);
}

}  // namespace tidegate::figures

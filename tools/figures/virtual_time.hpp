// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chart.hpp"
#include "core/concurrency.hpp"
#include "core/sliding_log.hpp"
#include "tidegate/quota.hpp"

/// Keys in virtual time, which counts seconds since a moment at which windows of 1 s, 10 s, one
/// minute and one hour all begin.
namespace tidegate::figures {

inline constexpr Time kZero{Micros{1'800'000'000'000'000}};

[[nodiscard]] Time At(double seconds) noexcept;
[[nodiscard]] double Seconds(Time time) noexcept;
[[nodiscard]] double Seconds(Micros time) noexcept;

/// Returns the quota of a spec. REQUIRES: the spec is valid.
[[nodiscard]] Quota MakeQuota(const QuotaSpec& spec);

struct Admitted {
  Time at;
  std::int64_t units;
};

/// Returns the units in (t - period, t] as a staircase over t, in seconds.
[[nodiscard]] std::vector<Point> InLastPeriod(std::span<const Admitted> admitted, Micros period);
/// Returns the greatest number of units in any (t - period, t].
[[nodiscard]] std::int64_t FullestWindow(std::span<const Admitted> admitted, Micros period);

/// Returns independent random arrivals, `rate` per second on average; the same ones in every run.
[[nodiscard]] std::vector<Time> PoissonArrivals(double rate, double seconds);

/// A sliding_log key with its memory.
class LogKey {
 public:
  explicit LogKey(const Quota& quota);
  LogKey(LogKey&&) = default;  // A copy would share the memory.
  LogKey& operator=(LogKey&&) = default;
  Outcome Step(std::int64_t cost, std::int64_t count, Time now);
  Outcome Debit(std::int64_t units, Time now);
  Outcome Refund(std::int64_t units, Time charged_at, Time now);
  [[nodiscard]] const sliding_log::Log& log() const noexcept { return log_; }

 private:
  Quota quota_;
  std::vector<sliding_log::Entry> memory_;
  sliding_log::Log log_;
};

/// A concurrency key with its memory. Ids are small numbers.
class LeaseKey {
 public:
  explicit LeaseKey(const Quota& quota);
  LeaseKey(LeaseKey&&) = default;  // A copy would share the memory.
  LeaseKey& operator=(LeaseKey&&) = default;
  Outcome Acquire(std::uint64_t id, std::int64_t cost, Time now);
  Outcome Renew(std::uint64_t id, Time now);
  Outcome Release(std::uint64_t id, Time now);
  [[nodiscard]] const concurrency::Leases& leases() const noexcept { return leases_; }

 private:
  Quota quota_;
  std::vector<concurrency::Lease> memory_;
  concurrency::Leases leases_;
};

}  // namespace tidegate::figures

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/charge.hpp"
#include "net/timer.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/hot_keys.hpp"
#include "telemetry/slot_table.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// Counts the decisions of one reactor by rule, outcome and decision source (`decided_by`). One
/// thread counts; any thread may read.
class DecisionCounters {
 public:
  /// Only operators' decisions have the outcomes kBanned and kExempted.
  enum class Outcome : std::uint8_t {
    kAllowed,
    kDenied,
    kShadowAllowed,
    kShadowDenied,
    kBanned,
    kExempted,
  };
  static constexpr std::size_t kOutcomes = 6;

  [[nodiscard]] static std::string_view Name(Outcome outcome) noexcept;
  [[nodiscard]] static constexpr Outcome OutcomeOf(Mode mode, const Decision& decision) noexcept {
    if (decision.decided_by == DecidedBy::kOperator) [[unlikely]]
      return decision.allowed ? Outcome::kExempted : Outcome::kBanned;
    return static_cast<Outcome>((mode == Mode::kShadow ? 2u : 0u) + (decision.allowed ? 0u : 1u));
  }

  /// Counts one decision. REQUIRES: `outcome` is the OutcomeOf a decision by `decided_by`.
  void Count(std::uint32_t slot, Outcome outcome, DecidedBy decided_by) {
    table_.Add(slot, Cell(outcome, decided_by));
  }

  /// Calls `see(outcome, decided_by, count)` for each counter of the rule in `slot` that is not 0.
  template <class See>
  void Each(std::uint32_t slot, See&& see) const {
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const std::uint64_t count = table_.Get(slot, cell);
      if (count == 0) continue;
      const auto source = static_cast<DecidedBy>(cell / kPerSource);
      const std::size_t column = cell % kPerSource;
      see(static_cast<Outcome>(source == DecidedBy::kOperator ? column + kPerSource : column),
          source, count);
    }
  }

 private:
  /// The outcomes of one decision source share a cache line: most decisions come from the store.
  static constexpr std::size_t kPerSource = 4;
  static constexpr std::size_t kCells = kDecisionSources * kPerSource;

  [[nodiscard]] static constexpr std::size_t Cell(Outcome outcome, DecidedBy decided_by) noexcept {
    return static_cast<std::size_t>(decided_by) * kPerSource +
           static_cast<std::size_t>(outcome) % kPerSource;
  }

  SlotTable<kCells> table_;
};

/// Measures the time from a frontend's call to its answer at one reactor. One thread measures; any
/// thread may read.
///
/// Reading the clock twice costs 70 ns, and a decision from memory 100 ns. So of the calls that are
/// answered at once, only every 33rd is timed, with weight 33. The interval is not 32, because
/// clients' pipelines have 16 or 32 commands, so the same command of each would always be timed.
/// All calls that are answered later are timed.
class DecisionLatency {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kBuckets = 18;  ///< Up to 1 us ... 131 ms; one more for the rest.
  static constexpr std::uint32_t kEvery = 33;

  [[nodiscard]] static constexpr double UpperSeconds(std::size_t bucket) noexcept {
    return static_cast<double>(std::uint64_t{1} << bucket) / 1e6;
  }

  /// The measurement of one call in progress.
  struct Mark {
    bool* answered = nullptr;  ///< The flag that Answered sets; only while Time runs.
    Clock::time_point began{};
    std::uint32_t weight = 0;  ///< The number of calls that this one stands for; 0: not timed.
  };

  /// Calls `start`, which hands a call to the store. `mark` must live until Answered.
  template <class Start>
  void Time(Mark& mark, Start&& start) {
    bool answered = false;
    mark.answered = &answered;
    mark.weight = 0;
    if (--left_ == 0) {
      left_ = kEvery;
      mark.weight = kEvery;
    }
    // If the last call was not answered at once, this one probably will not be either: time it now.
    const bool began = mark.weight != 0 || late_;
    if (began) mark.began = Clock::now();
    start();
    late_ = !answered;
    if (answered) return;  // The mark may have been destroyed.
    mark.answered = nullptr;
    if (!began) mark.began = Clock::now();  // 1 us late, for the first call that waits.
    mark.weight = 1;
  }

  /// Like Time, for a store that always answers before `start` returns. Untimed calls cost less.
  template <class Start>
  void TimeAtOnce(Mark& mark, Start&& start) {
    if (--left_ == 0) [[unlikely]] {
      left_ = kEvery;
      mark.weight = kEvery;
      mark.began = Clock::now();
    }
    start();
  }

  /// Ends the measurement. Ignores marks of calls that were not started through Time.
  void Answered(Mark& mark) noexcept {
    if (mark.answered != nullptr) {
      *mark.answered = true;
      mark.answered = nullptr;
    }
    if (mark.weight == 0) return;
    Add(Clock::now() - mark.began, mark.weight);
    mark.weight = 0;
  }

  void Add(std::chrono::nanoseconds took, std::uint64_t times) noexcept;

  /// Returns the number of calls that took at most UpperSeconds(bucket) and too long for the bucket
  /// before. The last bucket has no upper bound.
  [[nodiscard]] std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  [[nodiscard]] double seconds() const noexcept {
    return static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) / 1e9;
  }

 private:
  std::uint32_t left_ = kEvery;
  bool late_ = false;  ///< The last call was not answered at once.
  std::array<std::atomic<std::uint64_t>, kBuckets + 1> counts_{};
  std::atomic<std::uint64_t> nanoseconds_{0};
};

/// The metrics of one reactor's decisions: counters by rule and outcome, latency, hot keys. Must be
/// used on the reactor's thread, except for the getters, which any thread may call.
class DecisionMetrics {
 public:
  struct Options {
    bool decisions = true;       ///< Count decisions and measure their latency.
    std::size_t hot_keys = 100;  ///< The most keys in each list; 0: no lists.
    bool at_once = false;        ///< The store always answers before its call returns.
  };
  DecisionMetrics(net::Timers& timers, const Options& options);

  /// Calls `start`, which hands a call to the store, and times it. `mark` must live until Answered,
  /// which must be called when the call is answered, perhaps before this returns.
  template <class Start>
  void Time(DecisionLatency::Mark& mark, Start&& start) {
    if (!options_.decisions) return start();
    if (options_.at_once) return latency_.TimeAtOnce(mark, std::forward<Start>(start));
    latency_.Time(mark, std::forward<Start>(start));
  }
  void Answered(DecisionLatency::Mark& mark) noexcept {
    if (options_.decisions) latency_.Answered(mark);
  }

  /// Counts a decision by a rule, or by an operator about one of the rule's keys. A request counts
  /// once for each rule that decided it. Keys that an operator exempts do not count as hot keys.
  void Count(std::uint32_t slot, const Charge& charge, const Decision& decision) noexcept {
    using Counted = DecisionCounters::Outcome;
    const Counted outcome = DecisionCounters::OutcomeOf(charge.mode, decision);
    if (options_.decisions) counters_.Count(slot, outcome, decision.decided_by);
    if (hot_keys_ == nullptr || outcome == Counted::kExempted) return;
    const bool denied = outcome == Counted::kDenied || outcome == Counted::kBanned;
    hot_keys_->Count(slot, charge.identity, charge.cost,
                     denied ? HotKeys::Outcome::kDenied : HotKeys::Outcome::kPassed);
  }

  /// Counts one decided request once, even if several rules or none decided it.
  void CountRequest(bool allowed) noexcept {
    if (options_.decisions) {
      auto& count = allowed ? allowed_requests_ : denied_requests_;
      // Only this thread writes.
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (hot_keys_ != nullptr) hot_keys_->CountRequest();
  }

  [[nodiscard]] std::uint64_t allowed_requests() const noexcept { return allowed_requests_; }
  [[nodiscard]] std::uint64_t denied_requests() const noexcept { return denied_requests_; }
  [[nodiscard]] const DecisionCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const DecisionLatency& latency() const noexcept { return latency_; }
  /// Returns the last report of hot keys; never nullptr, but empty if hot keys are off.
  [[nodiscard]] std::shared_ptr<const HotReport> hot() const;

 private:
  // The members that every decision touches come first.
  const Options options_;
  std::unique_ptr<HotKeys> hot_keys_;  ///< nullptr: hot keys are off.
  std::atomic<std::uint64_t> allowed_requests_{0};
  std::atomic<std::uint64_t> denied_requests_{0};
  DecisionLatency latency_;
  DecisionCounters counters_;
};

/// Returns the metrics of all reactors: the number of decisions by rule, outcome and decision
/// source; their latency; and the rates of the hottest keys, by rank. `rule_names` has the rule of
/// each slot. The name of a key is never a label, because the number of keys has no bound.
[[nodiscard]] std::vector<MetricFamily> DecisionFamilies(
    std::span<const DecisionMetrics* const> reactors, const std::vector<std::string>& rule_names);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "net/timer.hpp"
#include "telemetry/decision_counters.hpp"
#include "telemetry/decision_latency.hpp"
#include "telemetry/hot_keys.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// What one reactor's doors tell of their decisions: counters by rule and outcome, hot keys, how
/// long they took. Doors are for the reactor's thread; what is read, any may read.
class Tally {
 public:
  struct Options {
    bool decisions = true;       ///< Counters and latency.
    std::size_t hot_keys = 100;  ///< In each list; 0: none.
    bool at_once = false;        ///< The store answers before it returns, always.
  };
  Tally(net::Timers& timers, const Options& options);

  /// Calls `ask`, which puts a question to the store, and times it. `mark` is the question's and
  /// must live until Answered, which is to be called once the answer is there, perhaps before this
  /// returns.
  template <class Ask>
  void Time(DecisionLatency::Mark& mark, Ask&& ask) {
    if (!options_.decisions) return ask();
    if (options_.at_once) return latency_.TimeAtOnce(mark, std::forward<Ask>(ask));
    latency_.Time(mark, std::forward<Ask>(ask));
  }
  void Answered(DecisionLatency::Mark& mark) noexcept {
    if (options_.decisions) latency_.Answered(mark);
  }

  /// One decision of a rule, or of an operator about one of its keys. A request that several rules
  /// decide counts once for each. A key that an operator exempts is not counted among hot keys.
  void Count(std::uint32_t slot, const Charge& charge, const Decision& decision) noexcept {
    using Outcome = DecisionCounters::Outcome;
    const Outcome outcome = DecisionCounters::OutcomeOf(charge.mode, decision);
    if (options_.decisions) counters_.Count(slot, outcome, decision.decided_by);
    if (hot_keys_ == nullptr || outcome == Outcome::kExempted) return;
    const bool denied = outcome == Outcome::kDenied || outcome == Outcome::kBanned;
    hot_keys_->Count(slot, charge.identity, charge.cost,
                     denied ? HotKeys::Outcome::kDenied : HotKeys::Outcome::kPassed);
  }

  /// Counts one request that was decided, however many rules decided it, also if none did.
  void CountRequest(bool allowed) noexcept {
    if (options_.decisions) {
      auto& count = allowed ? allowed_requests_ : denied_requests_;
      // Only this thread writes.
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (hot_keys_ != nullptr) hot_keys_->CountRequest();
  }

  [[nodiscard]] std::uint64_t allowed_requests() const noexcept {
    return allowed_requests_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t denied_requests() const noexcept {
    return denied_requests_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const DecisionCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const DecisionLatency& latency() const noexcept { return latency_; }
  /// Never nullptr; empty where hot keys are off.
  [[nodiscard]] std::shared_ptr<const HotReport> hot() const;

 private:
  // What every decision touches first.
  const Options options_;
  std::unique_ptr<HotKeys> hot_keys_;  ///< nullptr: off.
  std::atomic<std::uint64_t> allowed_requests_{0};
  std::atomic<std::uint64_t> denied_requests_{0};
  DecisionLatency latency_;
  DecisionCounters counters_;
};

}  // namespace tidegate

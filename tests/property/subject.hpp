// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/constant_size.hpp"
#include "core/quota_scale.hpp"
#include "core/sliding_log.hpp"
#include "oracle/buckets.hpp"
#include "oracle/log.hpp"
#include "oracle/windows.hpp"

/// One interface for the step functions of all algorithms, each together with its oracle.
namespace tidegate::property {

using oracle::Tick;

inline Time At(Tick tick) { return Time{Micros{tick}}; }
inline Tick TickOf(Time time) { return time.time_since_epoch().count(); }

struct TokenBucketKit : constant_size::TokenBucket {
  static constexpr Algorithm kAlgorithm = Algorithm::kTokenBucket;
  using Model = oracle::TokenBucket;
  static void Change(Model& model, const Quota& q, const State& s) { model = Model(q, s); }
  static Tick Stored(const State& s, const Quota&) { return TickOf(s.last_refill); }
  static bool Sound(const State& s, const Quota& q) {
    return s.rest >= 0 && s.rest < GrainsPerTick(q) && s.tokens <= q.capacity() &&
           s.tokens >= -Saturation(q) && (s.tokens < q.capacity() || s.rest == 0);
  }
};

struct GcraKit : constant_size::Gcra {
  static constexpr Algorithm kAlgorithm = Algorithm::kGcra;
  using Model = oracle::Gcra;
  static void Change(Model& model, const Quota& q, const State& s) { model = Model(q, s); }
  static Tick Stored(const State& s, const Quota& q) { return TickOf(s.tat - q.recovery()); }
  static bool Sound(const State& s, const Quota& q) {
    return s.rest >= 0 && s.rest < GrainsPerTick(q) && s.owed >= 0 &&
           (q.origin() == QuotaOrigin::kCaller
                ? s.owed >= q.recovery().count() ||
                      (s.owed == 0 && q.recovery() <= gcra::kShortReach)
                : s.owed <= Saturation(q) * GrainsPerUnit(q));
  }
};

struct FixedWindowKit : constant_size::FixedWindow {
  static constexpr Algorithm kAlgorithm = Algorithm::kFixedWindow;
  using Model = oracle::FixedWindow;
  static void Change(Model& model, const Quota& q, const State&) { model.ChangeQuota(q); }
  static Tick Stored(const State& s, const Quota&) { return TickOf(s.start); }
  static bool Sound(const State& s, const Quota& q) {
    return s.count >= 0 && TickOf(s.start) % q.period().count() == 0;
  }
};

struct SlidingWindowKit : constant_size::SlidingWindow {
  static constexpr Algorithm kAlgorithm = Algorithm::kSlidingWindow;
  using Model = oracle::SlidingWindow;
  static void Change(Model& model, const Quota& q, const State&) { model.ChangeQuota(q); }
  static Tick Stored(const State& s, const Quota&) { return TickOf(s.start); }
  static bool Sound(const State& s, const Quota& q) {
    return s.current >= 0 && s.previous >= 0 && TickOf(s.start) % q.period().count() == 0;
  }
};

/// Algorithms whose state is a struct that is passed by value.
template <class K>
class Subject {
 public:
  using Kit = K;
  using Model = typename Kit::Model;

  Subject(const Quota& quota, Tick now) : quota_(quota), state_(Kit::Fresh(quota, At(now))) {}

  Model NewModel(Tick now) const { return Model(quota_, now); }
  const Quota& quota() const { return quota_; }
  const typename Kit::State& state() const { return state_; }
  void ChangeQuota(const Quota& quota, Model& model) {
    quota_ = quota;
    Kit::Change(model, quota_, state_);
  }

  Outcome Step(std::int64_t cost, std::int64_t count, Tick now) {
    return Keep(Kit::Step(state_, quota_, cost, count, At(now)));
  }
  Outcome Debit(std::int64_t units, Tick now) {
    return Keep(Kit::Debit(state_, quota_, units, At(now)));
  }
  Outcome Refund(std::int64_t units, Tick charged_at, Tick now) {
    return Keep(Kit::Refund(state_, quota_, units, At(charged_at), At(now)));
  }
  /// Returns the time in the state from which a step back of the clock is measured.
  Tick Stored(Tick) const { return Kit::Stored(state_, quota_); }
  bool SameState(const Subject& other) const { return state_ == other.state_; }
  /// Returns what is wrong with the last state that a step returned; empty if nothing.
  std::string Fault() const { return fault_; }

 private:
  Outcome Keep(const Stepped<typename Kit::State>& stepped) {
    if (stepped.outcome.effect == Effect::kNone) {
      if (!(stepped.next == state_)) fault_ = "a step without effect changed the state";
    } else if (!Kit::Sound(stepped.next, quota_)) {
      fault_ = "the next state is not sound";
    }
    state_ = stepped.next;
    return stepped.outcome;
  }

  Quota quota_;
  typename Kit::State state_;
  std::string fault_;
};

/// The log in its own memory, which is sometimes smaller than the limit.
class LogSubject {
 public:
  using Model = oracle::SlidingLog;

  LogSubject(const Quota& quota, Tick, std::uint32_t room)
      : quota_(quota), memory_(room), log_(memory_.data(), room) {}
  LogSubject(const LogSubject& other)
      : quota_(other.quota_),
        memory_(other.memory_.size()),
        log_(memory_.data(), other.log_.capacity()) {
    log_.CopyFrom(other.log_);
  }
  LogSubject& operator=(const LogSubject&) = delete;

  Model NewModel(Tick) const { return Model(quota_, memory_.size()); }
  const Quota& quota() const { return quota_; }
  const sliding_log::Log& log() const { return log_; }
  void ChangeQuota(const Quota& quota, Model& model) {
    quota_ = quota;
    model.ChangeQuota(quota);
  }

  Outcome Step(std::int64_t cost, std::int64_t count, Tick now) {
    return Keep(sliding_log::Step(log_, quota_, cost, count, At(now)));
  }
  Outcome Debit(std::int64_t units, Tick now) {
    return Keep(sliding_log::Debit(log_, quota_, units, At(now)));
  }
  Outcome Refund(std::int64_t units, Tick charged_at, Tick now) {
    const Outcome outcome = sliding_log::Refund(log_, quota_, units, At(charged_at), At(now));
    Check();
    return outcome;
  }
  Tick Stored(Tick now) const { return log_.size() == 0 ? now : TickOf(log_.Newest().at); }
  bool SameState(const LogSubject& other) const {
    if (log_.size() != other.log_.size()) return false;
    for (std::uint32_t i = 0; i < log_.size(); ++i) {
      if (!(log_[i] == other.log_[i])) return false;
    }
    return true;
  }
  std::string Fault() const { return fault_; }

 private:
  Outcome Keep(const sliding_log::Plan& plan) {
    if (plan.outcome.effect != Effect::kNone) sliding_log::Commit(log_, quota_, plan.change);
    Check();
    return plan.outcome;
  }
  void Check() {
    std::int64_t units = 0;
    for (std::uint32_t i = 0; i < log_.size(); ++i) {
      units += log_[i].units;
      if (log_[i].units <= 0) fault_ = "an entry without units";
      if (i > 0 && log_[i - 1].at >= log_[i].at) fault_ = "entries out of order";
    }
    if (units != log_.units()) fault_ = "units() is not the sum of the entries";
  }

  Quota quota_;
  std::vector<sliding_log::Entry> memory_;
  sliding_log::Log log_;
  std::string fault_;
};

}  // namespace tidegate::property

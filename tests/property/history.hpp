// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/charge.hpp"
#include "core/quota_scale.hpp"
#include "oracle/model.hpp"
#include "property/quotas.hpp"
#include "property/source.hpp"
#include "property/subject.hpp"

namespace tidegate::property {

inline constexpr Tick kStart = 1'800'000'000'000'000;

inline std::string ToString(const Quota& q) {
  std::ostringstream text;
  text << Name(q.algorithm()) << " " << q.limit() << "/" << q.period().count() << "us capacity "
       << q.capacity() << " recovery " << q.recovery().count() << " saturation " << Saturation(q)
       << " max_debt " << q.max_debt()
       << (q.origin() == QuotaOrigin::kCaller ? " of a caller" : "");
  return text.str();
}

inline std::string ToString(const Outcome& o) {
  constexpr const char* kEffects[] = {"none", "charged", "repaired"};
  std::ostringstream text;
  text << "admitted " << o.admitted << " remaining " << o.remaining << " retry "
       << o.retry_after.count() << " more " << o.more_after.count() << " reset "
       << o.reset_after.count() << (o.never ? " never " : " ")
       << kEffects[static_cast<int>(o.effect)];
  return text.str();
}

/// The kinds of operations that a history may have besides plain steps on a clock that runs
/// forward.
struct Freedom {
  bool clock_steps_back = true;
  bool quota_changes = true;
  bool debits_and_refunds = true;
  bool several_at_once = true;
};

/// Chooses random times, costs and counts, and often chooses edge cases.
class Chooser {
 public:
  Chooser(Source& source, const Freedom& freedom) : source_(source), freedom_(freedom) {}

  /// Returns the time of the next step. `stored`: the time in the state.
  Tick NextTime(const Quota& quota, Tick now, Tick stored, const Outcome& last) {
    const Tick period = quota.period().count();
    const Tick recovery = quota.recovery().count();
    const Tick jitter = source_.Between(-1, 1);
    const std::uint64_t choice = source_.Below(freedom_.clock_steps_back ? 22 : 17);
    Tick next = now;
    switch (choice) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: break;
      case 5: next += 1; break;
      case 6: next += source_.Between(0, 100); break;
      case 7:
      case 8: next += source_.Between(0, 2 * period / quota.limit()); break;
      case 9:
      case 10:
      case 11: next += last.retry_after.count() + jitter; break;
      case 12: next += last.reset_after.count() + jitter; break;
      case 13: next += source_.Between(0, 2 * period); break;
      case 14: next += period + jitter; break;
      case 15: next += recovery + jitter; break;
      case 16:
        if (source_.Below(8) == 0) next += source_.Between(1, 30) * kLongest;
        break;
      case 17: next -= source_.Between(1, 5); break;
      case 18: next -= source_.Between(0, period); break;
      case 19: next = stored - period * source_.Between(1, 2) + jitter; break;
      case 20: next = stored - recovery * source_.Between(1, 2) + jitter; break;
      default: next -= 3'600'000'000; break;
    }
    if (!freedom_.clock_steps_back) next = std::max(next, now);
    // Stay far from the ends of the 64-bit range: at most 3,000 years after the epoch, and 100
    // before.
    return next > 95'000'000'000'000'000 || next < -3'200'000'000'000'000 ? kStart : next;
  }

  std::int64_t Cost(const Quota& quota, const Outcome& last) {
    std::int64_t cost = 1;
    switch (source_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: break;
      case 4: cost = 2; break;
      case 5: cost = quota.capacity(); break;
      case 6: cost = quota.capacity() - 1; break;
      case 7: cost = quota.capacity() + 1; break;
      case 8: cost = last.remaining; break;
      case 9: cost = last.remaining + 1; break;
      case 10: cost = source_.Magnitude(quota.capacity()); break;
      default: cost = source_.Below(4) == 0 ? kMaxCost : source_.Magnitude(100); break;
    }
    return std::clamp<std::int64_t>(cost, 1, kMaxCost);
  }

  /// Returns a number of requests; 0 is a peek. Bounded where the oracle would have to loop for
  /// long.
  std::int64_t Count(const Quota& quota, std::int64_t cost) {
    if (!freedom_.several_at_once) return source_.Below(4) == 0 ? 0 : 1;
    const bool few = quota.capacity() / cost <= 40;
    switch (source_.Below(10)) {
      case 0:
      case 1: return 0;
      case 2: return 2;
      case 3: return source_.Between(3, 12);
      case 4: return few ? kMaxCount : 30;
      default: return 1;
    }
  }

 private:
  Source& source_;
  Freedom freedom_;
};

/// One random sequence of operations on one state. Every result is compared with that of the
/// oracle.
template <class S>
class History {
 public:
  History(Source& source, S subject, const Freedom& freedom)
      : source_(source),
        chooser_(source, freedom),
        freedom_(freedom),
        subject_(std::move(subject)),
        model_(subject_.NewModel(kStart)) {}

  /// Returns the first disagreement and the operations that led to it; nullopt if there is none.
  std::optional<std::string> Run(int steps) {
    for (int i = 0; i < steps && !source_.Exhausted(); ++i) {
      now_ = chooser_.NextTime(subject_.quota(), now_, subject_.Stored(now_), last_);
      if (!Act()) return Tell();
    }
    return std::nullopt;
  }

 private:
  struct Act_ {
    const char* what;
    Tick now;
    std::int64_t units;
    std::int64_t count;
    Outcome got;
  };

  bool Act() {
    const std::uint64_t choice = source_.Below(24);
    if (choice == 0 && freedom_.quota_changes) {
      subject_.ChangeQuota(ChangedQuota(source_, subject_.quota()), model_);
      acts_.push_back({"new quota", now_, subject_.quota().limit(), 0, {}});
    }
    const std::int64_t cost = chooser_.Cost(subject_.quota(), last_);
    if (choice >= 20 && freedom_.debits_and_refunds) {
      return choice >= 22 ? Debit(cost) : Refund(cost);
    }
    const std::int64_t count = chooser_.Count(subject_.quota(), cost);
    expected_ = oracle::StepOneByOne(model_, cost, count, now_);
    return Agrees({"step", now_, cost, count, subject_.Step(cost, count, now_)});
  }
  bool Debit(std::int64_t units) {
    expected_ = oracle::ApplyDebit(model_, units, now_);
    return Agrees({"debit", now_, units, 1, subject_.Debit(units, now_)});
  }
  bool Refund(std::int64_t units) {
    const Tick period = subject_.quota().period().count();
    const Tick charged_at = now_ - source_.OneOf<Tick>({0, 0, 1, period - 1, period, 2 * period});
    expected_ = oracle::ApplyRefund(model_, units, charged_at, now_);
    return Agrees(
        {"refund", now_, units, now_ - charged_at, subject_.Refund(units, charged_at, now_)});
  }
  bool Agrees(const Act_& act) {
    acts_.push_back(act);
    last_ = act.got;
    if (!freedom_.several_at_once) expected_.more_after = act.got.more_after;
    return act.got == expected_ && subject_.Fault().empty();
  }

  std::string Tell() const {
    std::ostringstream text;
    text << ToString(subject_.quota()) << "\n";
    for (std::size_t i = acts_.size() > 12 ? acts_.size() - 12 : 0; i < acts_.size(); ++i) {
      const Act_& act = acts_[i];
      text << "  " << act.what << " at " << act.now - kStart << " units " << act.units << " x "
           << act.count << " -> " << ToString(act.got) << "\n";
    }
    text << "  expected: " << ToString(expected_) << "\n  " << subject_.Fault();
    return text.str();
  }

  Source& source_;
  Chooser chooser_;
  Freedom freedom_;
  S subject_;
  typename S::Model model_;
  Tick now_ = kStart;
  Outcome last_;
  Outcome expected_;
  std::vector<Act_> acts_;
};

template <class Kit>
std::optional<std::string> RunHistory(Source& source, const Freedom& freedom, int steps) {
  const Quota quota = AnyQuota(source, Kit::kAlgorithm);
  return History<Subject<Kit>>(source, {quota, kStart}, freedom).Run(steps);
}

inline std::optional<std::string> RunLogHistory(Source& source, Freedom freedom, int steps) {
  const Quota quota = AnyQuota(source, Algorithm::kSlidingLog);
  const bool cramped = source.Below(4) == 0;
  // Step cannot know whether Commit will find room for another entry. In a cramped log it may
  // therefore return a retry_after (if only the first of several requests are admitted) or a
  // more_after that ignores the merging of entries.
  freedom.several_at_once = !cramped;
  const std::int64_t room = cramped ? source.Between(1, quota.limit()) : kLongestList;
  return History<LogSubject>(source, {quota, kStart, static_cast<std::uint32_t>(room)}, freedom)
      .Run(steps);
}

}  // namespace tidegate::property

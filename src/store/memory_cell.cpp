// SPDX-License-Identifier: Apache-2.0
#include "store/memory_cell.hpp"

#include <algorithm>
#include <string>

#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"

namespace tidegate {
namespace {

/// The constant-size algorithms as types, so that one body serves all four.
struct TokenBucket {
  using State = token_bucket::State;
  static constexpr auto Fresh = token_bucket::Fresh;
  static constexpr auto Step = token_bucket::Step;
  static constexpr auto Debit = token_bucket::Debit;
  static Stepped<State> Refund(const State& s, const Quota& q, std::int64_t units, Time,
                               Time now) noexcept {
    return token_bucket::Refund(s, q, units, now);
  }
};
struct Gcra {
  using State = gcra::State;
  static constexpr auto Fresh = gcra::Fresh;
  static constexpr auto Step = gcra::Step;
  static constexpr auto Debit = gcra::Debit;
  static Stepped<State> Refund(const State& s, const Quota& q, std::int64_t units, Time,
                               Time now) noexcept {
    return gcra::Refund(s, q, units, now);
  }
};
struct FixedWindow {
  using State = fixed_window::State;
  static constexpr auto Fresh = fixed_window::Fresh;
  static constexpr auto Step = fixed_window::Step;
  static constexpr auto Debit = fixed_window::Debit;
  static constexpr auto Refund = fixed_window::Refund;
};
struct SlidingWindow {
  using State = sliding_window::State;
  static constexpr auto Fresh = sliding_window::Fresh;
  static constexpr auto Step = sliding_window::Step;
  static constexpr auto Debit = sliding_window::Debit;
  static constexpr auto Refund = sliding_window::Refund;
};

/// Calls `visit` with the type of a constant-size algorithm.
template <class Visit>
auto WithFixed(Algorithm algorithm, Visit visit) {
  switch (algorithm) {
    case Algorithm::kGcra:
      return visit(Gcra{});
    case Algorithm::kFixedWindow:
      return visit(FixedWindow{});
    case Algorithm::kSlidingWindow:
      return visit(SlidingWindow{});
    default:
      return visit(TokenBucket{});
  }
}

using sliding_log::Log;
constexpr std::uint32_t kFirstEntries = 4;
constexpr std::uint32_t kFirstLeases = 2;

Log* NewLog(ListBudget& budget, std::uint32_t capacity, Spend spend) noexcept {
  return budget.New<Log, sliding_log::Entry>(capacity, spend);
}
void Free(ListBudget& budget, Log* log) noexcept { budget.Delete<Log, sliding_log::Entry>(log); }

concurrency::Leases* NewLeases(ListBudget& budget, std::uint32_t capacity, Spend spend) noexcept {
  return budget.New<concurrency::Leases, concurrency::Lease>(capacity, spend);
}
void Free(ListBudget& budget, concurrency::Leases* leases) noexcept {
  budget.Delete<concurrency::Leases, concurrency::Lease>(leases);
}

std::uint32_t Doubled(std::uint32_t capacity, const Quota& quota) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(quota.limit(), capacity + 1, std::int64_t{capacity} * 2));
}

std::string Text(Time time) { return std::to_string(time.time_since_epoch().count()); }

}  // namespace

bool MemoryCell::Open(Time now) noexcept {
  if (meta_.kind() != Meta::kBlank) return true;
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog: {
      const auto first =
          static_cast<std::uint32_t>(std::min<std::int64_t>(kFirstEntries, quota_->limit()));
      Log* log = NewLog(*budget_, first, spend_);
      if (log == nullptr) return false;
      entry_->Save(log);
      break;
    }
    case Algorithm::kConcurrency: {
      concurrency::Leases* leases = NewLeases(*budget_, kFirstLeases, spend_);
      if (leases == nullptr) return false;
      entry_->Save(leases);
      break;
    }
    default:
      WithFixed(quota_->algorithm(), [&]<class A>(A) { entry_->Save(A::Fresh(*quota_, now)); });
  }
  meta_ = Meta{KindOf(quota_->algorithm()), now};
  return true;
}

void MemoryCell::Written(const Outcome& outcome, Time now) noexcept {
  meta_ = Meta{meta_.kind(), now + outcome.reset_after};
}

Outcome MemoryCell::Look(const Wish& wish, Time now) noexcept {
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog:
      return sliding_log::Step(*log(), *quota_, wish.cost, wish.count, now).outcome;
    case Algorithm::kConcurrency:
      return PlanLease(wish, now).outcome;
    default:
      return WithFixed(quota_->algorithm(), [&]<class A>(A) {
        const auto state = entry_->Load<typename A::State>();
        return A::Step(state, *quota_, wish.cost, wish.count, now).outcome;
      });
  }
}

Outcome MemoryCell::Apply(const Wish& wish, Time now) noexcept {
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog: {
      const auto plan = sliding_log::Step(*log(), *quota_, wish.cost, wish.count, now);
      if (plan.outcome.effect != Effect::kNone) {
        Commit(plan.change);
        Written(plan.outcome, now);
      } else {
        NotWritten(plan.outcome, now);
      }
      return plan.outcome;
    }
    case Algorithm::kConcurrency: {
      const auto plan = PlanLease(wish, now);
      if (plan.outcome.effect != Effect::kNone) {
        concurrency::Commit(*leases(), *quota_, plan.change, now);
        Written(plan.outcome, now);
      } else {
        NotWritten(plan.outcome, now);
      }
      return plan.outcome;
    }
    default:
      return WithFixed(quota_->algorithm(), [&]<class A>(A) {
        const auto state = entry_->Load<typename A::State>();
        const auto stepped = A::Step(state, *quota_, wish.cost, wish.count, now);
        if (stepped.outcome.effect != Effect::kNone) {
          entry_->Save(stepped.next);
          Written(stepped.outcome, now);
        } else {
          NotWritten(stepped.outcome, now);
        }
        return stepped.outcome;
      });
  }
}

concurrency::Plan MemoryCell::PlanLease(const Wish& wish, Time now) noexcept {
  const auto ask = [&](std::int64_t count) {
    return concurrency::Acquire(*leases(), *quota_, wish.lease, wish.cost, count, now);
  };
  // A look, too, must know whether there would be memory for the lease.
  const concurrency::Change change = ask(std::max<std::int64_t>(wish.count, 1)).change;
  const bool is_new = change.hold && change.own == concurrency::kNoLease;
  if (is_new && change.expired == 0 && leases()->size() == leases()->capacity() &&
      !MakeLeaseRoom(wish.count)) {
    // None: refused until the first of these has ended.
    auto refused = ask(0);
    refused.outcome.retry_after = leases()->all().front().expiry - now;
    return refused;
  }
  return ask(wish.count);
}

bool MemoryCell::MakeLeaseRoom(std::int64_t count) noexcept {
  const std::uint32_t capacity = Doubled(leases()->capacity(), *quota_);
  if (count == 0) {
    return budget_->Has<concurrency::Leases, concurrency::Lease>(capacity, spend_);
  }
  concurrency::Leases* bigger = NewLeases(*budget_, capacity, spend_);
  if (bigger == nullptr) return false;
  bigger->CopyFrom(*leases());
  Free(*budget_, leases());
  entry_->Save(bigger);
  return true;
}

void MemoryCell::Commit(const sliding_log::Change& change) noexcept {
  Log* const old = log();
  if (change.units > 0 && change.expired == 0 && old->size() == old->capacity() &&
      old->size() < quota_->limit()) {
    // Without memory for more, the newest entries are joined: that errs towards
    // denial, and the log is exact again once it has drained.
    if (Log* bigger = NewLog(*budget_, Doubled(old->capacity(), *quota_), spend_)) {
      bigger->CopyFrom(*old);
      Free(*budget_, old);
      entry_->Save(bigger);
    }
  }
  sliding_log::Commit(*log(), *quota_, change);
}

Outcome MemoryCell::Debit(std::int64_t units, Time now) noexcept {
  if (quota_->algorithm() == Algorithm::kSlidingLog) {
    const auto plan = sliding_log::Debit(*log(), *quota_, units, now);
    Commit(plan.change);
    Written(plan.outcome, now);
    return plan.outcome;
  }
  return WithFixed(quota_->algorithm(), [&]<class A>(A) {
    const auto stepped = A::Debit(entry_->Load<typename A::State>(), *quota_, units, now);
    entry_->Save(stepped.next);
    Written(stepped.outcome, now);
    return stepped.outcome;
  });
}

Outcome MemoryCell::Refund(std::int64_t units, Time charged_at, Time now) noexcept {
  if (quota_->algorithm() == Algorithm::kSlidingLog) {
    const Outcome outcome = sliding_log::Refund(*log(), *quota_, units, charged_at, now);
    Written(outcome, now);
    return outcome;
  }
  return WithFixed(quota_->algorithm(), [&]<class A>(A) {
    const auto stepped =
        A::Refund(entry_->Load<typename A::State>(), *quota_, units, charged_at, now);
    entry_->Save(stepped.next);
    Written(stepped.outcome, now);
    return stepped.outcome;
  });
}

Outcome MemoryCell::Renew(concurrency::LeaseId lease, Time now) noexcept {
  const auto plan = concurrency::Renew(*leases(), *quota_, lease, now);
  if (plan.outcome.effect != Effect::kNone) {
    concurrency::Commit(*leases(), *quota_, plan.change, now);
    Written(plan.outcome, now);
  }
  return plan.outcome;
}

Outcome MemoryCell::Release(concurrency::LeaseId lease, Time now) noexcept {
  const Outcome outcome = concurrency::Release(*leases(), *quota_, lease, now);
  Written(outcome, now);
  return outcome;
}

std::int64_t MemoryCell::HeldBy(concurrency::LeaseId lease, Time now) const noexcept {
  for (const concurrency::Lease& held : leases()->all()) {
    if (held.id == lease && held.expiry > now) return held.units;
  }
  return 0;
}

bool MemoryCell::HasRoom(const Quota& quota, const ListBudget& budget) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kSlidingLog:
      return budget.Has<Log, sliding_log::Entry>(kFirstEntries, Spend::kBudget);
    case Algorithm::kConcurrency:
      return budget.Has<concurrency::Leases, concurrency::Lease>(kFirstLeases, Spend::kBudget);
    default:
      return true;
  }
}

std::vector<Inspection::Field> MemoryCell::Describe() const {
  switch (quota_->algorithm()) {
    case Algorithm::kTokenBucket: {
      const auto s = entry_->Load<token_bucket::State>();
      return {{"tokens", std::to_string(s.tokens)},
              {"last_refill", Text(s.last_refill)},
              {"rest", std::to_string(s.rest)}};
    }
    case Algorithm::kGcra: {
      const auto s = entry_->Load<gcra::State>();
      return {
          {"tat", Text(s.tat)}, {"rest", std::to_string(s.rest)}, {"owed", std::to_string(s.owed)}};
    }
    case Algorithm::kFixedWindow: {
      const auto s = entry_->Load<fixed_window::State>();
      return {{"start", Text(s.start)}, {"count", std::to_string(s.count)}};
    }
    case Algorithm::kSlidingWindow: {
      const auto s = entry_->Load<sliding_window::State>();
      return {{"start", Text(s.start)},
              {"current", std::to_string(s.current)},
              {"previous", std::to_string(s.previous)}};
    }
    case Algorithm::kSlidingLog: {
      std::vector<Inspection::Field> fields;
      for (std::uint32_t i = 0; i < log()->size(); ++i) {
        fields.push_back({"entry", Text((*log())[i].at) + " " + std::to_string((*log())[i].units)});
      }
      return fields;
    }
    case Algorithm::kConcurrency: {
      std::vector<Inspection::Field> fields;
      for (const auto& lease : leases()->all()) {
        fields.push_back({"lease", Text(lease.expiry) + " " + std::to_string(lease.units)});
      }
      return fields;
    }
  }
  return {};
}

void MemoryCell::Dispose(ListBudget& budget, Entry& entry, Meta meta) noexcept {
  if (meta.kind() == KindOf(Algorithm::kSlidingLog)) {
    Free(budget, entry.Load<Log*>());
  } else if (meta.kind() == KindOf(Algorithm::kConcurrency)) {
    Free(budget, entry.Load<concurrency::Leases*>());
  }
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "store/memory_cell.hpp"

#include <algorithm>
#include <string>

#include "core/constant_size.hpp"

namespace tidegate {
namespace {

using concurrency::Leases;
using sliding_log::Log;
constexpr std::uint32_t kFirstEntries = 4;
constexpr std::uint32_t kFirstLeases = 2;

std::uint32_t Doubled(std::uint32_t capacity, const Quota& quota) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(quota.limit(), capacity + 1, std::int64_t{capacity} * 2));
}

std::string Text(std::int64_t number) { return std::to_string(number); }
std::string Text(Time time) { return Text(time.time_since_epoch().count()); }

}  // namespace

bool MemoryCell::Open(Time now) noexcept {
  if (meta_.kind() != Meta::kBlank) return true;
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog: {
      const auto first =
          static_cast<std::uint32_t>(std::min<std::int64_t>(kFirstEntries, quota_->limit()));
      Log* log = budget_->New<Log>(first, spend_);
      if (log == nullptr) return false;
      entry_->Save(log);
      break;
    }
    case Algorithm::kConcurrency: {
      Leases* leases = budget_->New<Leases>(kFirstLeases, spend_);
      if (leases == nullptr) return false;
      entry_->Save(leases);
      break;
    }
    default:
      constant_size::Dispatch(quota_->algorithm(),
                              [&]<class A>(A) { entry_->Save(A::Fresh(*quota_, now)); });
  }
  meta_ = Meta{KindOf(quota_->algorithm()), now};
  return true;
}

Outcome MemoryCell::Look(const Wish& wish, Time now) noexcept {
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog:
      return sliding_log::Step(*log(), *quota_, wish.cost, wish.count, now).outcome;
    case Algorithm::kConcurrency: return PlanLease(wish, now).outcome;
    default:
      return constant_size::Dispatch(quota_->algorithm(), [&]<class A>(A) {
        const auto state = entry_->Load<typename A::State>();
        return A::Step(state, *quota_, wish.cost, wish.count, now).outcome;
      });
  }
}

template <class Save>
void MemoryCell::Finish(const Outcome& outcome, Time now, Save save) noexcept {
  if (outcome.effect == Effect::kNone) return NotWritten(outcome, now);
  save();
  Written(outcome, now);
}

Outcome MemoryCell::Apply(const Wish& wish, Time now) noexcept {
  switch (quota_->algorithm()) {
    case Algorithm::kSlidingLog: {
      const auto plan = sliding_log::Step(*log(), *quota_, wish.cost, wish.count, now);
      Finish(plan.outcome, now, [&] { Commit(plan.change); });
      return plan.outcome;
    }
    case Algorithm::kConcurrency: {
      const auto plan = PlanLease(wish, now);
      Finish(plan.outcome, now, [&] { concurrency::Commit(*leases(), *quota_, plan.change, now); });
      return plan.outcome;
    }
    default:
      return constant_size::Dispatch(quota_->algorithm(), [&]<class A>(A) {
        const auto state = entry_->Load<typename A::State>();
        const auto stepped = A::Step(state, *quota_, wish.cost, wish.count, now);
        Finish(stepped.outcome, now, [&] { entry_->Save(stepped.next); });
        return stepped.outcome;
      });
  }
}

concurrency::Plan MemoryCell::PlanLease(const Wish& wish, Time now) noexcept {
  const auto ask = [&](std::int64_t count) {
    return concurrency::Acquire(*leases(), *quota_, wish.lease, wish.cost, count, now);
  };
  // A dry run must also find out whether there would be memory for the lease.
  const concurrency::Change change = ask(std::max<std::int64_t>(wish.count, 1)).change;
  const bool is_new = change.hold && change.own == concurrency::kNoLease;
  if (is_new && change.expired == 0 && leases()->size() == leases()->capacity() &&
      !MakeLeaseRoom(wish.count)) {
    // There is no memory: refuse until the first of the present leases has ended.
    auto refused = ask(0);
    refused.outcome.retry_after = leases()->all().front().expiry - now;
    return refused;
  }
  return ask(wish.count);
}

bool MemoryCell::MakeLeaseRoom(std::int64_t count) noexcept {
  const std::uint32_t capacity = Doubled(leases()->capacity(), *quota_);
  if (count == 0) {
    return budget_->Has<Leases>(capacity, spend_);
  }
  Leases* bigger = budget_->New<Leases>(capacity, spend_);
  if (bigger == nullptr) return false;
  bigger->CopyFrom(*leases());
  budget_->Delete(leases());
  entry_->Save(bigger);
  return true;
}

void MemoryCell::Commit(const sliding_log::Change& change) noexcept {
  Log* const old = log();
  if (change.units > 0 && change.expired == 0 && old->size() == old->capacity() &&
      old->size() < quota_->limit()) {
    // If there is no memory for a bigger log, Commit joins the newest entries. That can only deny
    // more, and the log is exact again once it has drained.
    if (Log* bigger = budget_->New<Log>(Doubled(old->capacity(), *quota_), spend_)) {
      bigger->CopyFrom(*old);
      budget_->Delete(old);
      entry_->Save(bigger);
    }
  }
  sliding_log::Commit(*log(), *quota_, change);
}

Outcome MemoryCell::Debit(std::int64_t units, Time now) noexcept {
  if (quota_->algorithm() == Algorithm::kSlidingLog) {
    const auto plan = sliding_log::Debit(*log(), *quota_, units, now);
    Commit(plan.change);
    return Written(plan.outcome, now);
  }
  return constant_size::Dispatch(quota_->algorithm(), [&]<class A>(A) {
    const auto stepped = A::Debit(entry_->Load<typename A::State>(), *quota_, units, now);
    entry_->Save(stepped.next);
    return Written(stepped.outcome, now);
  });
}

Outcome MemoryCell::Refund(std::int64_t units, Time charged_at, Time now) noexcept {
  if (quota_->algorithm() == Algorithm::kSlidingLog) {
    return Written(sliding_log::Refund(*log(), *quota_, units, charged_at, now), now);
  }
  return constant_size::Dispatch(quota_->algorithm(), [&]<class A>(A) {
    const auto stepped =
        A::Refund(entry_->Load<typename A::State>(), *quota_, units, charged_at, now);
    entry_->Save(stepped.next);
    return Written(stepped.outcome, now);
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
  return Written(concurrency::Release(*leases(), *quota_, lease, now), now);
}

std::int64_t MemoryCell::HeldBy(concurrency::LeaseId lease, Time now) const noexcept {
  for (const concurrency::Lease& held : leases()->all()) {
    if (held.id == lease && held.expiry > now) return held.units;
  }
  return 0;
}

bool MemoryCell::HasRoom(const Quota& quota, const ListBudget& budget) noexcept {
  switch (quota.algorithm()) {
    case Algorithm::kSlidingLog: return budget.Has<Log>(kFirstEntries, Spend::kBudget);
    case Algorithm::kConcurrency: return budget.Has<Leases>(kFirstLeases, Spend::kBudget);
    default: return true;
  }
}

std::vector<Inspection::Field> MemoryCell::Describe() const {
  switch (quota_->algorithm()) {
    case Algorithm::kTokenBucket: {
      const auto s = entry_->Load<token_bucket::State>();
      return {
          {"tokens", Text(s.tokens)}, {"last_refill", Text(s.last_refill)}, {"rest", Text(s.rest)}};
    }
    case Algorithm::kGcra: {
      const auto s = entry_->Load<gcra::State>();
      return {{"tat", Text(s.tat)}, {"rest", Text(s.rest)}, {"owed", Text(s.owed)}};
    }
    case Algorithm::kFixedWindow: {
      const auto s = entry_->Load<fixed_window::State>();
      return {{"start", Text(s.start)}, {"count", Text(s.count)}};
    }
    case Algorithm::kSlidingWindow: {
      const auto s = entry_->Load<sliding_window::State>();
      return {
          {"start", Text(s.start)}, {"current", Text(s.current)}, {"previous", Text(s.previous)}};
    }
    case Algorithm::kSlidingLog: {
      std::vector<Inspection::Field> fields;
      for (std::uint32_t i = 0; i < log()->size(); ++i) {
        fields.push_back({"entry", Text((*log())[i].at) + " " + Text((*log())[i].units)});
      }
      return fields;
    }
    case Algorithm::kConcurrency: {
      std::vector<Inspection::Field> fields;
      for (const auto& lease : leases()->all()) {
        fields.push_back({"lease", Text(lease.expiry) + " " + Text(lease.units)});
      }
      return fields;
    }
  }
  return {};
}

void MemoryCell::Dispose(ListBudget& budget, Entry& entry, Meta meta) noexcept {
  if (meta.kind() == KindOf(Algorithm::kSlidingLog)) {
    budget.Delete(entry.Load<Log*>());
  } else if (meta.kind() == KindOf(Algorithm::kConcurrency)) {
    budget.Delete(entry.Load<Leases*>());
  }
}

}  // namespace tidegate

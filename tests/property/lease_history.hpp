// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/concurrency.hpp"
#include "oracle/leases.hpp"
#include "property/history.hpp"

namespace tidegate::property {

inline concurrency::LeaseId IdOf(std::uint64_t id) { return {~id, id}; }

/// The `concurrency` algorithm with its memory, with the operation names that histories use.
class LeaseSubject {
 public:
  LeaseSubject(const Quota& quota, std::uint32_t room)
      : quota_(quota), memory_(room), leases_(memory_.data(), room) {}
  LeaseSubject(const LeaseSubject& other)
      : quota_(other.quota_),
        memory_(other.memory_.size()),
        leases_(memory_.data(), other.leases_.capacity()) {
    leases_.CopyFrom(other.leases_);
  }
  LeaseSubject& operator=(const LeaseSubject&) = delete;

  const Quota& quota() const { return quota_; }
  const concurrency::Leases& leases() const { return leases_; }
  void ChangeQuota(const Quota& quota) { quota_ = quota; }

  Outcome Acquire(std::uint64_t id, std::int64_t cost, std::int64_t count, Tick now) {
    return Keep(concurrency::Acquire(leases_, quota_, IdOf(id), cost, count, At(now)), now);
  }
  Outcome Renew(std::uint64_t id, Tick now) {
    return Keep(concurrency::Renew(leases_, quota_, IdOf(id), At(now)), now);
  }
  Outcome Release(std::uint64_t id, Tick now) {
    return concurrency::Release(leases_, quota_, IdOf(id), At(now));
  }
  bool SameState(const LeaseSubject& other) const {
    return std::ranges::equal(leases_.all(), other.leases_.all());
  }

 private:
  Outcome Keep(const concurrency::Plan& plan, Tick now) {
    if (plan.outcome.effect != Effect::kNone) {
      concurrency::Commit(leases_, quota_, plan.change, At(now));
    }
    return plan.outcome;
  }

  Quota quota_;
  std::vector<concurrency::Lease> memory_;
  concurrency::Leases leases_;
};

/// A random sequence of operations on the leases of one key, compared with the oracle.
class LeaseHistory {
 public:
  LeaseHistory(Source& source, const Quota& quota, const Freedom& freedom)
      : source_(source),
        chooser_(source, freedom),
        freedom_(freedom),
        subject_(quota, static_cast<std::uint32_t>(kLongestList + 1)),
        model_(quota) {}

  std::optional<std::string> Run(int steps) {
    for (int i = 0; i < steps && !source_.Exhausted(); ++i) {
      const auto all = subject_.leases().all();
      const Tick stored = all.empty() ? now_ : TickOf(all.back().expiry);
      now_ = chooser_.NextTime(subject_.quota(), now_, stored, last_);
      if (!Act()) return told_;
    }
    return std::nullopt;
  }

 private:
  bool Act() {
    if (freedom_.quota_changes && source_.Below(24) == 0) {
      subject_.ChangeQuota(ChangedQuota(source_, subject_.quota()));
      model_.ChangeQuota(subject_.quota());
    }
    const auto id = source_.Below(static_cast<std::uint64_t>(subject_.quota().limit()) + 2);
    const std::int64_t cost = chooser_.Cost(subject_.quota(), last_);
    switch (source_.Below(8)) {
      case 0:
        return Agrees("renew", id, 0, subject_.Renew(id, now_), oracle::Renew(model_, id, now_));
      case 1:
        return Agrees("release", id, 0, subject_.Release(id, now_),
                      oracle::Release(model_, id, now_));
      default: {
        const std::int64_t count = source_.OneOf<std::int64_t>({0, 1, 1, 1, 1, 2, 7});
        return Agrees("acquire", id, cost, subject_.Acquire(id, cost, count, now_),
                      oracle::Acquire(model_, id, cost, count, now_));
      }
    }
  }

  bool Agrees(const char* what, std::uint64_t id, std::int64_t cost, const Outcome& got,
              const Outcome& expected) {
    last_ = got;
    if (got == expected && SameLeases()) return true;
    std::ostringstream text;
    text << ToString(subject_.quota()) << "\n  " << what << " " << id << " cost " << cost << " at "
         << now_ - kStart << "\n  got " << ToString(got) << "\n  expected " << ToString(expected)
         << "\n  leases:";
    for (const auto& lease : subject_.leases().all()) {
      text << " " << lease.id.low << ":" << lease.units << "@" << TickOf(lease.expiry) - kStart;
    }
    text << "\n  expected:";
    for (const auto& held : model_.held()) {
      text << " " << held.id << ":" << held.units << "@" << held.expiry - kStart;
    }
    told_ = text.str();
    return false;
  }

  /// Returns true if the leases are in the order of their expiry and equal those of the oracle.
  bool SameLeases() const {
    const auto all = subject_.leases().all();
    if (!std::ranges::is_sorted(all, {}, &concurrency::Lease::expiry)) return false;
    return all.size() == model_.held().size() &&
           std::ranges::all_of(model_.held(), [&](const oracle::Leases::Held& held) {
             return std::ranges::count(
                        all, concurrency::Lease{IdOf(held.id), At(held.expiry), held.units}) == 1;
           });
  }

  Source& source_;
  Chooser chooser_;
  Freedom freedom_;
  LeaseSubject subject_;
  oracle::Leases model_;
  Tick now_ = kStart;
  Outcome last_;
  std::string told_;
};

inline std::optional<std::string> RunLeaseHistory(Source& source, const Freedom& freedom,
                                                  int steps) {
  return LeaseHistory(source, AnyQuota(source, Algorithm::kConcurrency), freedom).Run(steps);
}

}  // namespace tidegate::property

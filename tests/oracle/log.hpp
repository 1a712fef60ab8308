// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "oracle/model.hpp"

namespace tidegate::oracle {

/// Every charge with its time, oldest first. `room` is the number of entries of the log under test,
/// because merging entries in a full log is part of the contract.
class SlidingLog {
 public:
  SlidingLog(const Quota& quota, std::size_t room) : law_(Law::Of(quota)), room_(room) {}

  const Law& law() const { return law_; }
  void ChangeQuota(const Quota& quota) { law_ = Law::Of(quota); }

  bool Repair(Tick now) {
    if (charges_.empty() || charges_.back().at - now <= law_.period) return false;
    for (Charge& charge : charges_) charge.at = std::min(charge.at, now);
    Join();
    return true;
  }
  bool Passes(std::int64_t cost, Tick at) const { return Used(at) + cost <= law_.limit; }
  bool IsFresh(Tick at) const { return Used(at) == 0; }
  Tick Held(Tick at) const { return charges_.empty() ? at : std::max(at, charges_.back().at); }
  void Take(std::int64_t units, Tick at) {
    const Tick held = Held(at);
    std::erase_if(charges_, [&](const Charge& charge) { return !Counts(charge, held); });
    const bool full = charges_.size() >= room_ || static_cast<Wide>(charges_.size()) >= law_.limit;
    if (full && !charges_.empty()) charges_.back().at = held;
    charges_.push_back({held, units});
    Join();
  }
  void Debit(std::int64_t units, Tick at) {
    const Wide room = std::max(law_.limit + law_.max_debt - Used(at), Wide{0});
    const Wide taken = std::min(Wide{units}, room);
    if (taken > 0) Take(static_cast<std::int64_t>(taken), at);
  }
  /// Refunds the newest charges first. Right after a repair the times of charges are meaningless,
  /// so `charged_at` is ignored.
  bool Refund(std::int64_t units, Tick charged_at, Tick at, bool repaired) {
    bool found = false;
    const Tick held = Held(at);
    std::erase_if(charges_, [&](const Charge& charge) { return !Counts(charge, held); });
    for (std::size_t i = charges_.size(); i-- > 0;) {
      // A charge made while the clock was behind is stored with a later time than `charged_at`.
      const bool noted_later = held > at && charged_at + law_.period > at;
      if (charges_[i].at > charged_at && !repaired && !noted_later) continue;
      const std::int64_t back = std::min(units, charges_[i].units);
      charges_[i].units -= back;
      units -= back;
      found = found || back > 0;
    }
    std::erase_if(charges_, [](const Charge& charge) { return charge.units == 0; });
    return found;
  }

  struct Charge {
    Tick at;
    std::int64_t units;
  };
  const std::vector<Charge>& charges() const { return charges_; }

 private:
  bool Counts(const Charge& charge, Tick at) const { return at < charge.at + law_.period; }
  Wide Used(Tick at) const {
    Wide sum = 0;
    for (const Charge& charge : charges_) sum += Counts(charge, Held(at)) ? charge.units : 0;
    return sum;
  }
  /// Merges charges with equal times into one entry.
  void Join() {
    for (std::size_t i = charges_.size(); i-- > 1;) {
      if (charges_[i].at != charges_[i - 1].at) continue;
      charges_[i - 1].units += charges_[i].units;
      charges_.erase(charges_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  Law law_;
  std::size_t room_;
  std::vector<Charge> charges_;
};

}  // namespace tidegate::oracle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "oracle/model.hpp"

namespace tidegate::oracle {

/// Stores each charge with the number of its epoch-aligned window.
class FixedWindow {
 public:
  FixedWindow(const Quota& quota, Tick now) : law_(Law::Of(quota)), window_(Number(now)) {}

  const Law& law() const { return law_; }
  void ChangeQuota(const Quota& quota) { law_ = Law::Of(quota); }

  bool Repair(Tick now) {
    if (window_ <= Number(now) + 1) return false;
    window_ = Number(now);
    return true;
  }
  bool Passes(std::int64_t cost, Tick at) const { return Used(at) + cost <= law_.limit; }
  bool IsFresh(Tick at) const { return Used(at) == 0; }
  Tick Held(Tick at) const { return at; }
  void Take(std::int64_t cost, Tick at) { Set(Used(at) + cost, at); }
  void Debit(std::int64_t units, Tick at) {
    const Wide most = std::max(law_.limit + law_.max_debt, Used(at));
    Set(std::min(Used(at) + units, most), at);
  }
  bool Refund(std::int64_t units, Tick charged_at, Tick at, bool /*repaired*/) {
    if (Number(charged_at) < Number(at)) return false;
    Set(std::max(Used(at) - units, Wide{0}), at);
    return true;
  }

 private:
  Tick Number(Tick at) const { return FloorDiv(at, static_cast<Tick>(law_.period)); }
  Wide Used(Tick at) const { return Number(at) > window_ ? 0 : std::min(used_, law_.saturation); }
  void Set(Wide used, Tick at) {
    used_ = used;
    window_ = std::max(window_, Number(at));
  }

  Law law_;
  Tick window_;
  Wide used_ = 0;
};

/// The charges of two windows in one list. Those of the older window fade while the newer window
/// passes.
class SlidingWindow {
 public:
  SlidingWindow(const Quota& quota, Tick now)
      : law_(Law::Of(quota)), slice_(Slice(law_)), window_(Number(now)) {}

  const Law& law() const { return law_; }
  void ChangeQuota(const Quota& quota) {
    law_ = Law::Of(quota);
    slice_ = Slice(law_);
  }

  /// Returns the shortest step in which the previous window can fade with limit * period / slice <=
  /// 2^51; 0 if there is none.
  static Tick Slice(const Law& law) {
    const Wide most = Wide{1} << 51;
    for (const Tick base : {10, 2}) {
      for (Wide slice = 1; law.period % slice == 0; slice *= base) {
        if (law.limit * (law.period / slice) <= most) return static_cast<Tick>(slice);
      }
    }
    return 0;
  }

  bool Repair(Tick now) {
    const Tick shift = Number(now) - window_;
    if (shift >= -1) return false;
    for (Charge& charge : charges_) charge.window += shift;
    window_ += shift;
    Take(0, now);  // A repair writes the state, as taking 0 units does.
    return true;
  }
  bool Passes(std::int64_t cost, Tick at) const { return Fits(cost, at, law_.limit); }
  Tick Held(Tick at) const { return at; }
  bool IsFresh(Tick at) const {
    const Tick window = std::max(Number(at), window_);
    return Units(window) == 0 && Units(window - 1) == 0;
  }
  void Take(std::int64_t cost, Tick at) {
    window_ = std::max(window_, Number(at));
    // A write lowers counts that a larger quota allowed to the maximum of this quota.
    const auto current = static_cast<std::int64_t>(Units(window_));
    const auto previous = static_cast<std::int64_t>(Units(window_ - 1));
    charges_ = {{window_ - 1, previous}, {window_, current}, {window_, cost}};
  }
  void Debit(std::int64_t units, Tick at) {
    const Wide most = law_.limit + law_.max_debt;
    Take(Least([&](Tick n) { return n >= units || !Fits(n + 1, at, most); }), at);
  }
  bool Refund(std::int64_t units, Tick charged_at, Tick at, bool /*repaired*/) {
    const Tick window = std::max(Number(at), window_);
    // A charge made while a later window was current counts in that window.
    const Tick charged = Number(charged_at) >= Number(at) ? window : Number(charged_at);
    if (charged < window - 1) return false;
    Take(0, at);
    const Wide back = std::min(Wide{units}, Units(charged));
    charges_.push_back({charged, -static_cast<std::int64_t>(back)});
    return true;
  }

 private:
  struct Charge {
    Tick window;
    std::int64_t units;
  };

  Tick Number(Tick at) const { return FloorDiv(at, static_cast<Tick>(law_.period)); }
  /// Returns true if at most `most` units are in use after `units` more.
  bool Fits(std::int64_t units, Tick at, Wide most) const {
    const Tick window = std::max(Number(at), window_);
    const Tick period = static_cast<Tick>(law_.period);
    const Tick gone = FloorDiv(std::max(at - window * period, Tick{0}), slice_) * slice_;
    return Units(window - 1) * (law_.period - gone) + (Units(window) + units) * law_.period <=
           most * law_.period;
  }
  Wide Units(Tick window) const {
    Wide sum = 0;
    for (const Charge& charge : charges_) sum += charge.window == window ? charge.units : 0;
    return std::min(sum, law_.saturation);
  }

  Law law_;
  Tick slice_;
  Tick window_;
  std::vector<Charge> charges_;
};

}  // namespace tidegate::oracle

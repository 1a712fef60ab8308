// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <unordered_map>

#include "store/redis/slot.hpp"

namespace tidegate::redis {

/// Slots of which some keys are on one node and some already on another. A call that names several
/// keys of such a slot is refused by both nodes (TRYAGAIN), so each key goes alone for a while. No
/// clock of its own.
class RestlessSlots {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// After the last that was seen of it.
  static constexpr std::chrono::milliseconds kFor{500};

  void Note(Slot slot, TimePoint now) {
    if (until_.size() >= kMany) {
      std::erase_if(until_, [now](const auto& each) { return each.second <= now; });
    }
    until_[slot] = now + kFor;
  }
  [[nodiscard]] bool Has(Slot slot, TimePoint now) {
    const auto found = until_.find(slot);
    if (found == until_.end()) return false;
    if (found->second > now) return true;
    until_.erase(found);
    return false;
  }
  [[nodiscard]] bool empty() const noexcept { return until_.empty(); }

 private:
  static constexpr std::size_t kMany = 256;
  std::unordered_map<Slot, TimePoint> until_;
};

}  // namespace tidegate::redis

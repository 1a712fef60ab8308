// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tidegate/call.hpp"

namespace tidegate::redis {

/// Calls that wait, in the order of their deadlines, which are all as long: the one that came first
/// is the first. They are linked by what they carry themselves.
class WaitingList {
 public:
  [[nodiscard]] Call* first() const noexcept { return first_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// REQUIRES: `record.since` is set. Quick where hardly any that waits came later.
  void Add(Call& call) noexcept {
    Call* before = last_;
    while (before != nullptr && before->record.since > call.record.since) {
      before = before->record.earlier;
    }
    Call*& next = before == nullptr ? first_ : before->record.later;
    call.record.earlier = before;
    call.record.later = next;
    (next == nullptr ? last_ : next->record.earlier) = &call;
    next = &call;
    ++size_;
  }
  void Remove(Call& call) noexcept {
    CallRecord& record = call.record;
    (record.earlier == nullptr ? first_ : record.earlier->record.later) = record.later;
    (record.later == nullptr ? last_ : record.later->record.earlier) = record.earlier;
    --size_;
  }

 private:
  Call* first_ = nullptr;
  Call* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tidegate::redis

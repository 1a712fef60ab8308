// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// The exact sliding window: it records the time of every admitted unit, so that no window of one
/// period ever holds more than the limit. A unit counts until just before one period later.
namespace tidegate::sliding_log {

/// The units that were admitted at one instant. Units of equal times share one entry.
struct Entry {
  Time at;
  std::int64_t units;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// The entries from oldest to newest, in a ring buffer. A log does not own its memory.
class Log {
 public:
  using Item = Entry;

  Log(Entry* memory, std::uint32_t capacity) noexcept : memory_(memory), capacity_(capacity) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t units() const noexcept { return units_; }  ///< Units of all entries.
  [[nodiscard]] const Entry& operator[](std::uint32_t i) const noexcept {
    assert(i < size_);
    return memory_[Place(i)];
  }
  [[nodiscard]] const Entry& Newest() const noexcept { return (*this)[size_ - 1]; }

  void PopFront(std::uint32_t n) noexcept;
  void PopBack() noexcept {
    units_ -= Newest().units;
    --size_;
  }
  /// REQUIRES: size() < capacity(), and `entry.at` is not before the newest entry's time.
  void PushBack(const Entry& entry) noexcept;
  void Replace(std::uint32_t i, const Entry& entry) noexcept {
    units_ += entry.units - (*this)[i].units;
    memory_[Place(i)] = entry;
  }
  /// Removes the entries that refunds have emptied.
  void DropEmpty() noexcept;
  /// Copies all entries of `other`. REQUIRES: this log is empty and has room for them.
  void CopyFrom(const Log& other) noexcept {
    assert(size_ == 0 && other.size() <= capacity_);
    for (std::uint32_t i = 0; i < other.size(); ++i) PushBack(other[i]);
  }

 private:
  [[nodiscard]] std::uint32_t Place(std::uint32_t i) const noexcept {
    const std::uint32_t p = head_ + i;
    return p >= capacity_ ? p - capacity_ : p;
  }

  Entry* memory_;
  std::uint32_t capacity_;
  std::uint32_t head_ = 0;
  std::uint32_t size_ = 0;
  std::int64_t units_ = 0;
};

/// The change that a step makes to the log; Commit carries it out.
struct Change {
  std::uint32_t expired = 0;  ///< The number of oldest entries that have left the window.
  Time at{};                  ///< The step's time.
  std::int64_t units = 0;     ///< The units to add at that time.
  bool repaired = false;      ///< Entries later than `at` are moved there first.
};

struct Plan {
  Outcome outcome;
  Change change;
};

/// Admits as many of `count` requests of `cost` each as the window has room for.
[[nodiscard]] Plan Step(const Log& log, const Quota& quota, std::int64_t cost, std::int64_t count,
                        Time now) noexcept;
/// Adds `units` even if there is no room, but no more than `max_debt` above the limit.
[[nodiscard]] Plan Debit(const Log& log, const Quota& quota, std::int64_t units, Time now) noexcept;

/// Carries `change` out. If the log is full, in its memory or with `limit` entries, the newest
/// entry gets the new time and the new units are added to it. That can only deny more; the step's
/// retry_after does not take it into account and may be too early. REQUIRES: capacity() >= 1.
void Commit(Log& log, const Quota& quota, const Change& change) noexcept;

/// Takes `units` off the newest entries that are not later than `charged_at`.
Outcome Refund(Log& log, const Quota& quota, std::int64_t units, Time charged_at,
               Time now) noexcept;

}  // namespace tidegate::sliding_log

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// The exact sliding window: the time of every admitted unit, so that no window
/// of one period, wherever it begins, ever holds more than the limit. A unit
/// counts from its time until one period later, that moment excluded.
namespace tidegate::sliding_log {

/// `units` admitted at one instant. Equal times share an entry and keep their sum.
struct Entry {
  Time at;
  std::int64_t units;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// Entries from oldest to newest, a ring in memory that somebody else owns.
class Log {
 public:
  Log(Entry* memory, std::uint32_t capacity) noexcept : memory_(memory), capacity_(capacity) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t units() const noexcept { return units_; }  ///< Of all entries.
  [[nodiscard]] const Entry& operator[](std::uint32_t i) const noexcept {
    assert(i < size_);
    return memory_[Place(i)];
  }
  [[nodiscard]] const Entry& Newest() const noexcept { return (*this)[size_ - 1]; }

  void PopFront(std::uint32_t n) noexcept;
  void PopBack() noexcept;
  /// REQUIRES: size() < capacity(), at >= the newest.
  void PushBack(const Entry& entry) noexcept;
  void Replace(std::uint32_t i, const Entry& entry) noexcept;
  /// Closes the gaps that refunds have left.
  void DropEmpty() noexcept;
  /// Takes over all entries of `other`. REQUIRES: empty, and room for them.
  void CopyFrom(const Log& other) noexcept;

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

/// What a step wants done to the log; Commit does it.
struct Change {
  std::uint32_t expired = 0;  ///< Entries that have left the window.
  Time at{};                  ///< The step's time.
  std::int64_t units = 0;     ///< To be added at that time.
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

/// Carries `change` out. A log that is full, in its memory or with `limit`
/// entries, lets the newest entry move up to the new one and join it: that errs
/// towards denial only (and the step's retry_after, which could not know of it,
/// may then come too early). REQUIRES: capacity() >= 1.
void Commit(Log& log, const Quota& quota, const Change& change) noexcept;

/// Takes `units` off the newest entries that are not later than `charged_at`.
Outcome Refund(Log& log, const Quota& quota, std::int64_t units, Time charged_at,
               Time now) noexcept;

}  // namespace tidegate::sliding_log

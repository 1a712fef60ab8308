// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <span>

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// At most `limit` units held at once. Each holder has a lease under an id of
/// its own choice, alive until its expiry, that moment excluded: whoever crashes
/// gives its place back by doing nothing.
namespace tidegate::concurrency {

/// A lease id as the store keeps it: a 128-bit fingerprint of the caller's.
struct LeaseId {
  std::uint64_t high;
  std::uint64_t low;

  friend bool operator==(const LeaseId&, const LeaseId&) = default;
};

struct Lease {
  LeaseId id;
  Time expiry;
  std::int64_t units;

  friend bool operator==(const Lease&, const Lease&) = default;
};

/// Leases in the order of their expiry, in memory that somebody else owns.
class Leases {
 public:
  Leases(Lease* memory, std::uint32_t capacity) noexcept : memory_(memory), capacity_(capacity) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::span<const Lease> all() const noexcept { return {memory_, size_}; }

  /// Keeps the order. REQUIRES: size() < capacity().
  void Insert(const Lease& lease) noexcept;
  void Erase(std::uint32_t i) noexcept;
  void DropFirst(std::uint32_t n) noexcept;
  /// Brings every expiry later than `latest` down to it.
  void Clamp(Time latest) noexcept;
  /// Takes over all leases of `other`. REQUIRES: empty, and room for them.
  void CopyFrom(const Leases& other) noexcept;

 private:
  Lease* memory_;
  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
};

inline constexpr std::uint32_t kNoLease = UINT32_MAX;

/// What a step wants done to the leases; Commit does it.
struct Change {
  std::uint32_t expired = 0;     ///< The first ones, gone.
  std::uint32_t own = kNoLease;  ///< Where the id's own living lease stands.
  bool repaired = false;         ///< Some expiry was impossibly far ahead.
  bool hold = false;             ///< Hold `lease` from now on, in place of `own`.
  Lease lease{};
};

struct Plan {
  Outcome outcome;
  Change change;
};

/// Asks for `cost` units under `id`. Who asks again under its own id is renewed,
/// so all of `count` equal requests pass, or none.
[[nodiscard]] Plan Acquire(const Leases& leases, const Quota& quota, LeaseId id, std::int64_t cost,
                           std::int64_t count, Time now) noexcept;
/// Prolongs a living lease to at least one period from now; admits nothing if it is
/// gone.
[[nodiscard]] Plan Renew(const Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept;

/// Carries `change` out. REQUIRES: room for one more, or own, or nothing to hold.
void Commit(Leases& leases, const Quota& quota, const Change& change, Time now) noexcept;

/// Ends a lease; `admitted` is 0 if it was gone already.
Outcome Release(Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept;

}  // namespace tidegate::concurrency

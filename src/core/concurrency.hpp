// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <span>

#include "core/outcome.hpp"
#include "tidegate/quota.hpp"

/// Lets at most `limit` units be held at once. Each holder has a lease under an id of its choice,
/// active until just before its expiry: the place of a crashed holder becomes free by itself.
namespace tidegate::concurrency {

/// A lease id as the store keeps it: a 128-bit fingerprint of the caller's id.
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

/// A list of leases in the order of their expiry. It does not own its memory.
class Leases {
 public:
  using Item = Lease;

  Leases(Lease* memory, std::uint32_t capacity) noexcept : memory_(memory), capacity_(capacity) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::span<const Lease> all() const noexcept { return {memory_, size_}; }

  /// Inserts `lease` in the order of expiry. REQUIRES: size() < capacity().
  void Insert(const Lease& lease) noexcept;
  void Erase(std::uint32_t i) noexcept;
  void DropFirst(std::uint32_t n) noexcept;
  /// Sets every expiry that is later than `latest` to `latest`.
  void Clamp(Time latest) noexcept {
    for (std::uint32_t i = size_; i-- > 0 && memory_[i].expiry > latest;)
      memory_[i].expiry = latest;
  }
  /// Copies all leases of `other`. REQUIRES: this list is empty and has room for them.
  void CopyFrom(const Leases& other) noexcept;

 private:
  Lease* memory_;
  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
};

inline constexpr std::uint32_t kNoLease = UINT32_MAX;

/// The change that a step makes to the leases; Commit carries it out.
struct Change {
  std::uint32_t expired = 0;     ///< The number of leases, from the first, that have expired.
  std::uint32_t own = kNoLease;  ///< The index of the id's own active lease.
  bool repaired = false;         ///< Some expiry was impossibly far ahead and is corrected.
  bool hold = false;             ///< `lease` is to be inserted, in place of `own`.
  Lease lease{};
};

struct Plan {
  Outcome outcome;
  Change change;
};

/// Requests `cost` units under `id`. An active lease of that id is renewed, so all of `count` equal
/// requests pass, or none.
[[nodiscard]] Plan Acquire(const Leases& leases, const Quota& quota, LeaseId id, std::int64_t cost,
                           std::int64_t count, Time now) noexcept;
/// Prolongs an active lease to at least one period from now; `admitted` is 0 if it is gone.
[[nodiscard]] Plan Renew(const Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept;

/// Carries `change` out. REQUIRES: there is room for one more lease once the expired ones are gone,
/// unless `change` replaces a lease or inserts none.
void Commit(Leases& leases, const Quota& quota, const Change& change, Time now) noexcept;

/// Ends a lease; `admitted` is 0 if it was gone already.
Outcome Release(Leases& leases, const Quota& quota, LeaseId id, Time now) noexcept;

}  // namespace tidegate::concurrency

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tidegate in a program, from the first line to the advanced layer.
//
// 1. Check a key against a limit. Each key (a user, an address, an API key) has its own bucket:
//
//     tidegate::Limiter login(tidegate::Quota::PerSecond(5).Burst(10));
//     if (auto d = login.Check("alice"); !d.allowed) return Retry(d.retry_after);
//
// 2. Wait instead of being denied: WaitUntilAllowed blocks, WhenAllowed calls back.
//
//     login.WaitUntilAllowed("alice", 2s);
//
// 3. Charge a cost that is known only afterwards, such as the bytes of a response:
//
//     traffic.Debit("alice", response.size());
//
// 4. Limit how many requests run at the same time; the lease is released when the scope ends:
//
//     tidegate::ConcurrencyLimiter uploads(3, 10min);
//     if (auto lease = uploads.Acquire("alice")) Upload();
//
// 5. For several quotas on one request (all or nothing), quotas that differ from call to call,
//    shadow rules, refunds and inspection, see tidegate/rule_limiter.hpp.
//
// Everything is in memory, exact to one microsecond, thread-safe, and does no I/O.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

class Store;

/// How much memory a limiter may use, and which clock it reads.
struct MemoryOptions {
  /// The most keys that are tracked. Each tracked key takes less than 64 bytes. When this many keys
  /// are tracked, new keys share one bucket until a tracked key has fully recovered.
  std::size_t max_keys = 1'000'000;
  /// The most additional bytes that `sliding_log` and concurrency limits may use for their lists.
  std::size_t max_list_bytes = 256u << 20;
  /// The clock to read, which must outlive the limiter; nullptr selects the machine's clock.
  const Clock* clock = nullptr;
};

/// Limits how much each key may use. Most programs want Check. Thread-safe; movable.
///
/// An empty key and a cost outside 1 to 2^31-1 are mistakes of the program. They are always denied
/// (Decision::never), so that they cannot pass by accident.
class Limiter {
 public:
  /// Throws std::invalid_argument for a `concurrency` quota: use ConcurrencyLimiter instead.
  explicit Limiter(const Quota& quota, const MemoryOptions& options = {});
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  /// Answers requests that still wait with a denial.
  ~Limiter();

  /// Decides whether `key` may use `cost` units now. Charges the units if it may; a denial charges
  /// nothing.
  Decision Check(std::string_view key, std::int64_t cost = 1) noexcept;

  /// Returns the decision that Check would make, without charging.
  [[nodiscard]] Decision Peek(std::string_view key, std::int64_t cost = 1) const noexcept;

  /// Charges `cost` units that were used already, even if fewer are left. The key can then owe
  /// units, up to Quota::max_debt. The decision says whether a request of cost 1 would pass now.
  Decision Debit(std::string_view key, std::int64_t cost) noexcept;

  /// Forgets the key, so that its next request finds a full quota. Returns true if the limiter had
  /// a state of the key.
  bool Reset(std::string_view key) noexcept;

  /// Waits until the request passes. Returns the denial as soon as it is certain that the request
  /// does not pass within `timeout`, usually at once. Requests that wait for one key pass in the
  /// order of their arrival; Check does not wait behind them. The wait uses the machine's clock,
  /// not MemoryOptions::clock.
  Decision WaitUntilAllowed(std::string_view key, Micros timeout, std::int64_t cost = 1);

  /// Does the same as WaitUntilAllowed without blocking: calls `done` exactly once, on this thread
  /// before it returns if the answer is known at once, else later on a thread of the limiter.
  /// `done` must not throw and must not destroy the limiter.
  void WhenAllowed(std::string key, Micros timeout, std::function<void(const Decision&)> done,
                   std::int64_t cost = 1);

  [[nodiscard]] const Quota& quota() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The right to run under a ConcurrencyLimiter. A Lease holds the units of its cost until it is
/// destroyed or released, or until its time has passed without a renewal. Movable; used by one
/// thread at a time. May outlive its limiter.
class [[nodiscard]] Lease {
 public:
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { Release(); }

  /// Returns true if the lease was granted, was not released, and no Renew() found that it had
  /// expired.
  explicit operator bool() const noexcept { return store_ != nullptr; }
  /// Returns the decision of Acquire. The retry_after of a denial is the time after which the next
  /// unit is free at the latest.
  [[nodiscard]] const Decision& decision() const noexcept { return decision_; }

  /// Renews the lease for another full lease time. Returns false if the lease had expired; another
  /// holder may have its units now.
  bool Renew() noexcept;
  void Release() noexcept;

 private:
  friend class ConcurrencyLimiter;
  Lease(std::shared_ptr<Store> store, const Quota& quota, std::string_view key, std::int64_t cost);

  std::shared_ptr<Store> store_;  ///< nullptr if the lease holds no units.
  Quota quota_;
  std::string key_;
  std::string id_;
  Decision decision_;
};

/// Limits how many requests of each key are in progress at the same time. Thread-safe.
class ConcurrencyLimiter {
 public:
  /// A lease that is not renewed ends after `lease_time`, so that a lost lease does not block its
  /// units for ever. Throws std::invalid_argument if the limit or the time is invalid.
  explicit ConcurrencyLimiter(std::int64_t limit, Micros lease_time = std::chrono::minutes{1},
                              const MemoryOptions& options = {});

  /// Takes `cost` units of the limit for `key`. The returned lease is false if fewer units were
  /// free, if the key is empty or if the cost is below 1.
  Lease Acquire(std::string_view key, std::int64_t cost = 1);

 private:
  std::shared_ptr<Store> store_;
  Quota quota_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/charge.hpp"
#include "store/call.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"
#include "tidegate/limiter.hpp"
#include "tidegate/rule_charge.hpp"

namespace tidegate {

/// Counters of a store since its start.
struct StoreStats {
  std::uint64_t tracked = 0;     ///< Entries in use now: keys, and ids of refunds.
  std::uint64_t reclaimed = 0;   ///< Entries of recovered keys that were freed for new keys.
  std::uint64_t overflowed = 0;  ///< Charges that were counted in overflow buckets.
  std::uint64_t repaired = 0;    ///< Times impossibly far in the future, moved to the present.
  std::uint64_t list_bytes = 0;  ///< Bytes that logs and leases use now.
};

/// The interface of stores that carry calls out without making the caller wait.
class AsyncStore {
 public:
  virtual ~AsyncStore() = default;

  /// Carries out `call` and runs its callback `finished` exactly once: before Start returns if the
  /// store answers at once, as the memory store does; otherwise later, on the caller's reactor.
  virtual void Start(Call& call) noexcept = 0;
  /// A hint that `charge` will be applied in a moment: a store in memory starts to fetch the cache
  /// lines of its key. Has no other effect.
  virtual void Prefetch(const Charge& charge) noexcept { (void)charge; }
};

/// Applies charges. Thread-safe. Only Inspect and an Error's message allocate for the caller;
/// methods throw only if that memory is missing.
class Store : public AsyncStore {
 public:
  /// Carries out `call` with the methods below, which return when the operation is done.
  void Start(Call& call) noexcept override;

  /// Applies `count` identical requests, each charging the whole list all or nothing, with the same
  /// result as if they had come one by one. Returns how many of them pass, which are the first
  /// ones. Fills one Decision per charge, which describes the state after the admitted requests:
  /// for the first request that did not pass or, if all passed, for the last one.
  ///
  /// Shadow charges are made only for requests that pass and never refuse one.
  /// A `concurrency` charge acquires its lease. REQUIRES: as many decisions as charges.
  [[nodiscard]] virtual Result<std::int64_t> Apply(std::span<const Charge> charges,
                                                   std::int64_t count,
                                                   std::span<Decision> decisions) = 0;

  /// Applies one request with one charge. A single shadow charge denies nothing: `allowed` says
  /// what it would have decided if it were enforced.
  [[nodiscard]] virtual Result<Decision> Apply(const Charge& charge) = 0;

  /// Returns the decision that Apply would make now, without charging; `remaining` is what is left
  /// now. A key that is not tracked counts as fresh or, while the store is full, as one that would
  /// share its rule's overflow bucket. A `concurrency` charge without a lease id gets the decision
  /// on a new lease.
  [[nodiscard]] virtual Result<Decision> Peek(const Charge& charge) = 0;

  /// Charges a cost that is known only afterwards, whether it fits or not. The Decision says
  /// whether a request of cost 1 would pass now, or after which time.
  [[nodiscard]] virtual Result<Decision> Debit(const Charge& charge) = 0;

  /// Gives the cost back, never beyond capacity. Returns kNo if the id was applied before, the
  /// charge's window has passed, or the key has no entry of its own: charges to an overflow bucket
  /// stay.
  [[nodiscard]] virtual Result<Applied> Refund(const Charge& charge,
                                               const RefundRequest& refund) = 0;

  /// Forgets the key: its next request finds a full quota.
  [[nodiscard]] virtual Result<Applied> Reset(const Charge& charge) = 0;

  [[nodiscard]] virtual Result<Inspection> Inspect(const Charge& charge) = 0;

  /// Prolongs the charge's lease to at least one period from now; returns kNo if the lease is gone.
  [[nodiscard]] virtual Result<Applied> Renew(const Charge& charge) = 0;
  /// Ends the charge's lease; returns kNo if the lease was gone.
  [[nodiscard]] virtual Result<Applied> Release(const Charge& charge) = 0;

  [[nodiscard]] virtual StoreStats Stats() const = 0;
};

/// The size of the memory pages of the memory store's table.
enum class Pages : std::uint8_t {
  kSmall,  ///< Takes memory key by key: for programs whose main work is something else.
  kHuge,   ///< Takes memory 2 MiB at a time if the system can: faster, for servers.
};

/// Returns the embedded store: one process, no I/O, one lock bit per key.
[[nodiscard]] std::unique_ptr<Store> NewMemoryStore(const MemoryOptions& options = {},
                                                    Pages pages = Pages::kSmall);

}  // namespace tidegate

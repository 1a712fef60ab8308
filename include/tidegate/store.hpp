// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/call.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// What a store holds for one key, for people and consoles.
struct Inspection {
  bool tracked = false;  ///< False: nothing is stored, the key counts as full.
  Decision decision;     ///< What a request would be told, without charging it.
  struct Field {
    std::string name;
    std::string value;
  };
  /// As stored: `tokens`, `last_refill`, ...; one `entry` (time, units) per item of a
  /// log, one `lease` (expiry, units) per lease.
  std::vector<Field> state;
};

/// Counters of a store since its start.
struct StoreStats {
  std::uint64_t tracked = 0;     ///< Entries in use now: keys, and ids of refunds.
  std::uint64_t reclaimed = 0;   ///< Entries of fully recovered keys given to new ones.
  std::uint64_t overflowed = 0;  ///< Charges that fell to a rule's overflow bucket.
  std::uint64_t repaired = 0;    ///< Stored times found impossibly far ahead.
  std::uint64_t list_bytes = 0;  ///< Held by logs and leases now.
};

/// Carries calls out without making the caller wait.
class AsyncStore {
 public:
  virtual ~AsyncStore() = default;

  /// Carries `call` out and calls its `finished` exactly once: before Start returns if
  /// the store answers at once, as memory does; else later, on the caller's reactor.
  virtual void Start(Call& call) noexcept = 0;
  /// `charge` will be asked for in a moment: what is far away in memory can be on its way
  /// meanwhile. Nothing else comes of it.
  virtual void Expect(const Charge& charge) noexcept { (void)charge; }
};

/// Applies charges. Thread-safe. Only Inspect and an Error's message allocate
/// for the caller; nothing throws but for want of that memory.
class Store : public AsyncStore {
 public:
  /// Through the calls below, which wait for their answer.
  void Start(Call& call) noexcept override;

  /// Applies `count` identical requests, each charging the whole list all or
  /// nothing; returns how many pass: the first so many of them, exactly as if
  /// they had come one by one. Fills one Decision per charge, which describes
  /// the state after the admitted ones: for the first request that did not pass
  /// if there is one, else for the last that did.
  ///
  /// Shadow charges are made only for requests that pass and never refuse one.
  /// A `concurrency` charge acquires its lease. REQUIRES: as many decisions as charges.
  [[nodiscard]] virtual Result<std::int64_t> Apply(std::span<const Charge> charges,
                                                   std::int64_t count,
                                                   std::span<Decision> decisions) = 0;

  /// Short for one request with one charge. A shadow charge alone refuses nothing:
  /// `allowed` tells what it would have said.
  [[nodiscard]] virtual Result<Decision> Apply(const Charge& charge) = 0;

  /// What Apply would answer now; charges nothing, and `remaining` is what is there.
  /// A key that is not tracked is taken as fresh, or, while the store is full, as one
  /// that would share its rule's overflow bucket. A `concurrency` charge without a lease
  /// id is a look at what a newcomer would be told.
  [[nodiscard]] virtual Result<Decision> Peek(const Charge& charge) = 0;

  /// Charges the cost whether it is there or not: for costs known only afterwards. The
  /// Decision tells whether a request of cost 1 would pass now, or when.
  [[nodiscard]] virtual Result<Decision> Debit(const Charge& charge) = 0;

  /// Gives the cost back, never beyond capacity. kNothing where the id was applied
  /// before, the charge's window has passed, or the key has no entry of its own: what
  /// was charged to an overflow bucket stays charged.
  [[nodiscard]] virtual Result<Done> Refund(const Charge& charge,
                                            const tidegate::Refund& refund) = 0;

  /// Forgets the key: its next request finds a full quota.
  [[nodiscard]] virtual Result<Done> Reset(const Charge& charge) = 0;

  [[nodiscard]] virtual Result<Inspection> Inspect(const Charge& charge) = 0;

  /// Prolongs the charge's lease to at least one period from now; kNothing if it is
  /// gone.
  [[nodiscard]] virtual Result<Done> Renew(const Charge& charge) = 0;
  /// Ends the charge's lease; kNothing if it was gone.
  [[nodiscard]] virtual Result<Done> Release(const Charge& charge) = 0;

  [[nodiscard]] virtual StoreStats Stats() const = 0;
};

/// How the memory store's table is laid out.
enum class Pages : std::uint8_t {
  kSmall,  ///< Takes memory key by key: for programs that limit beside other work.
  kHuge,   ///< Takes it 2 MiB at a time where the system can: quicker, for servers.
};

struct MemoryOptions {
  /// So many keys are tracked, at under 64 bytes each (and a few percent more, since
  /// chance spreads them over the table). When all places are in use, new keys share
  /// one bucket per rule until one of the tracked has fully recovered.
  std::size_t max_keys = 1'000'000;
  /// The most that `sliding_log` and `concurrency` may hold beside that.
  std::size_t max_list_bytes = 256u << 20;
  /// Must outlive the store. nullptr: a RealClock of the store's own.
  const Clock* clock = nullptr;
  Pages pages = Pages::kSmall;
};

/// The embedded store: one process, no I/O, one lock bit per key.
[[nodiscard]] std::unique_ptr<Store> NewMemoryStore(const MemoryOptions& options = {});

}  // namespace tidegate

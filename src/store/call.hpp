// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/charge.hpp"
#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

struct Call;
class PartOwner;
namespace redis {
class Batch;
}  // namespace redis

/// Working data of the store that carries out a Call, kept in the call so that a waiting call needs
/// no memory of the store. Only the store reads or writes it.
struct CallRecord {
  Call* earlier = nullptr;  ///< The waiting call whose deadline comes before this call's.
  Call* later = nullptr;
  std::int64_t since = 0;                  ///< The start, in ns of the monotonic clock.
  std::array<std::uint64_t, 2> request{};  ///< A hash of the request: see Identify.
  redis::Batch* batch = nullptr;           ///< The batch in which the call waits.
  std::uint32_t entry = 0;                 ///< The index of its entry in the batch.
  std::uint32_t place = 0;                 ///< The index among the calls of that entry.
  std::uint32_t open = 0;                  ///< The number of charges not answered yet.
  std::uint16_t slot = 0;                  ///< The hash slot of the call's keys.
  bool resumed = false;                    ///< The call is in the list of resumed calls.
  std::uint32_t renewed = 0;   ///< Bit i is set if the lease of charge i was held before.
  PartOwner* owner = nullptr;  ///< The request that this call is a part of.
  Time at{};                   ///< The time of the decision, by the store's clock.
};

/// An operation of a Store and its answer, for callers that must not wait.
///
/// The caller fills in the call, keeps it and everything that it points to alive, and passes it to
/// Store::Start. `finished` is called exactly once, when all members below it are filled in.
/// Nothing is allocated but an Error's message.
struct Call {
  enum class Kind : std::uint8_t { kApply, kPeek, kDebit, kRefund, kReset, kRenew, kRelease };

  Kind kind = Kind::kApply;
  /// kApply is all or nothing; the other kinds are carried out on each charge by itself.
  std::span<const Charge> charges;
  std::span<Decision> decisions;  ///< REQUIRES: as many decisions as charges.
  RefundRequest refund;           ///< Used by kRefund only.
  void (*finished)(Call& call) noexcept = nullptr;

  /// kApply: true if the request passed. kPeek: true if the request would pass now. The other
  /// kinds: true if a request of cost 1 would pass afterwards.
  bool allowed = false;
  /// kRefund, kReset, kRenew and kRelease: kYes if the operation changed anything for any charge.
  Applied applied = Applied::kNo;
  /// Set only if a failure policy answered (see `decided_by`): true if the store certainly did not
  /// carry the call out, because it was not sent or was refused. If false, the store may have
  /// carried it out.
  bool not_executed = false;
  std::optional<Error> error;  ///< If set, nothing else is filled in, and kApply charged nothing.

  CallRecord record;  ///< Used by the store only.
};

}  // namespace tidegate

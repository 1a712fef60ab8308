// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tidegate/charge.hpp"
#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// A refund says which charge it takes back.
struct Refund {
  /// Chosen by the caller. The same id applies once per key; it is remembered until
  /// the key must have recovered.
  std::string_view id;
  /// When the charge was made, if the caller knows. Window algorithms drop a
  /// refund whose window has passed; without a time it is taken as of now.
  std::optional<Time> charged_at = std::nullopt;
  /// The same as how long ago, for callers that do not know the store's clock.
  std::optional<Micros> age = std::nullopt;
};

/// Whether an operation on a key or a lease found something to do.
enum class Done : std::uint8_t { kApplied, kNothing };

struct Call;

/// What the store that carries a Call out keeps in it until it is finished: a call that waits costs
/// no memory of the store's. Nobody else's business.
struct CallRecord {
  Call* earlier = nullptr;  ///< Of those that wait, in the order of their deadlines.
  Call* later = nullptr;
  std::int64_t since = 0;                  ///< On the monotonic clock, in nanoseconds.
  std::array<std::uint64_t, 2> request{};  ///< Equal for calls that ask the same.
  void* batch = nullptr;                   ///< Where it waits...
  std::uint32_t entry = 0;                 ///< ... in which entry...
  std::uint32_t place = 0;                 ///< ... and where among those that ask the same.
  std::uint32_t open = 0;                  ///< Parts of it that are not answered yet.
  std::uint16_t slot = 0;                  ///< Of its keys.
  bool resumed = false;                    ///< It waits with those that had waited before.
  std::uint32_t renewed = 0;               ///< Charges whose leases were held before, as bits.
  void* span = nullptr;                    ///< The request that it is a part of.
  Time at{};                               ///< When it was decided, by the store's clock.
};

/// One question to a Store and its answer, for callers that must not wait.
///
/// The caller fills it, keeps it and all that it points at alive, and hands it to
/// Store::Start; `finished` is called exactly once, with everything below it
/// filled. Nothing is allocated but an Error's message.
struct Call {
  enum class Kind : std::uint8_t { kApply, kPeek, kDebit, kRefund, kReset, kRenew, kRelease };

  Kind kind = Kind::kApply;
  /// kApply is all or nothing; the others are carried out on each charge by itself.
  std::span<const Charge> charges;
  std::span<Decision> decisions;  ///< REQUIRES: as many as charges.
  Refund refund;                  ///< kRefund only.
  void (*finished)(Call& call) noexcept = nullptr;

  /// kApply: the request passed. kPeek: it would pass now. The others: one of cost 1 would,
  /// afterwards.
  bool allowed = false;
  /// kRefund, kReset, kRenew and kRelease: whether any charge found something to do.
  Done done = Done::kNothing;
  /// Only if a failure policy answered (`decided_by`): the store certainly did not carry the call
  /// out, because it was not sent or was refused. If false, the store may have carried it out.
  bool not_executed = false;
  std::optional<Error> error;  ///< Then nothing else is filled, and kApply charged nothing.

  CallRecord record;  ///< The store's.
};

}  // namespace tidegate

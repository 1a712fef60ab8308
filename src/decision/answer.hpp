// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "net/out_buffer.hpp"
#include "rules/config.hpp"
#include "tidegate/call.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// The outcome of a call, the same for every frontend. Points into the call.
struct Answer {
  Call::Kind kind = Call::Kind::kApply;
  bool allowed = true;
  bool exempt = false;          ///< Passes uncounted, by an entry of `exempt` or an operator.
  bool denied = false;          ///< Refused by an entry of `deny` or by an operator's ban.
  std::optional<Done> applied;  ///< Only for refund, reset, renew and release.
  std::span<const Charge> charges;
  std::span<const Decision> decisions;
  const Decision* governing = nullptr;  ///< nullptr: neither a rule nor an operator decided.

  [[nodiscard]] bool banned() const noexcept {
    return governing != nullptr && governing->reason == Reason::kBanned;
  }
  /// The HTTP status: 200; 429 over a limit; 403 denied; 503 closed by a failure policy; 404 if the
  /// lease to renew is gone. An operation that was carried out is not a denial.
  [[nodiscard]] int status() const noexcept;
};

/// Returns the answer to a call that the store completed without an error. If the call is an
/// operation (any kind but kApply and kPeek) and a rule is closed, that rule governs, because the
/// operation was not applied to it.
[[nodiscard]] Answer AnswerOf(const Call& call) noexcept;

/// True if a quota was counted. If the failure policy `open` or `closed` or an operator decided,
/// the numbers of the quota are unknown.
[[nodiscard]] constexpr bool IsCounted(const Decision& decision) noexcept {
  return decision.decided_by < DecidedBy::kOpen;
}

/// Writes the answer as JSON. A rule has its own `decided_by` and `reason` only if its `decided_by`
/// differs from the governing rule's. If `status` is 400 or above, the members of a problem
/// (RFC 9457) come first.
void WriteAnswerJson(net::OutBuffer& out, const Answer& answer, int status);

/// Writes the RateLimit header fields that the configuration selects, if the governing rule was
/// counted, and for a denial Retry-After and Cache-Control. `jitter` is added to Retry-After before
/// it is rounded up.
void WriteAnswerFields(net::OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter);

/// Returns the HTTP status for an Error of the store or the rules.
[[nodiscard]] int StatusOf(ErrorCode code) noexcept;

}  // namespace tidegate

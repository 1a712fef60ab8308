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

/// The outcome of a call, as every frontend tells it. Points into the call.
struct Answer {
  Call::Kind kind = Call::Kind::kApply;
  bool allowed = true;
  bool exempt = false;          ///< An entry of `exempt` or an operator let it pass, uncounted.
  bool denied = false;          ///< An entry of `deny` or an operator's ban refused it.
  std::optional<Done> applied;  ///< Of refund, reset, renew and release.
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

/// The answer to a call that the store answered without an error. Of an operation (any kind but
/// kApply and kPeek) one closed rule governs: it was not carried out there.
[[nodiscard]] Answer AnswerOf(const Call& call) noexcept;

/// Whether a quota was counted. Where a failure policy or an operator decided, the numbers of the
/// quota are unknown.
[[nodiscard]] constexpr bool IsCounted(const Decision& decision) noexcept {
  return decision.decided_by < DecidedBy::kOpen;
}

/// Writes the answer as JSON. Rules that another source decided than the governing one name it.
/// With a status of 400 and above the members of a problem (RFC 9457) come first.
void WriteAnswerJson(net::OutBuffer& out, const Answer& answer, int status);

/// Writes the RateLimit header fields that the configuration selects, if the governing rule was
/// counted, and Retry-After and Cache-Control of a denial. `jitter` is added to Retry-After before
/// it is rounded up.
void WriteAnswerFields(net::OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter);

/// The HTTP status of an Error of the store or the rules.
[[nodiscard]] int StatusOf(ErrorCode code) noexcept;

}  // namespace tidegate

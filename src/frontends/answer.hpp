// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/out_buffer.hpp"
#include "rules/config.hpp"
#include "rules/rule_set.hpp"
#include "tidegate/call.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// What a door tells: the same words at every door. Views as in the Call.
struct Answer {
  bool allowed = true;
  bool exempt = false;                    ///< An entry of `exempt` let it pass, uncounted.
  bool denied = false;                    ///< An entry of `deny` refused it, or an operator: 403.
  std::string_view banned_by = {};        ///< The rule whose key an operator banned; empty: none.
  std::optional<Micros> banned_for = {};  ///< How long still; nothing: for good.
  std::optional<Done> applied;            ///< Of refund, renew and release.
  std::span<const Charge> charges;
  std::span<const Decision> decisions;
  const Decision* governing = nullptr;  ///< nullptr: no rule matched.

  /// 200, 429, 403, or 503 where a failure policy closed.
  [[nodiscard]] int status() const noexcept;
};

/// The answer where nothing was asked of the store: to what `access` says of a request without
/// charges.
[[nodiscard]] Answer AnswerOf(Access access, const Charges& charges) noexcept;

/// The answer to a call that has finished without an error. Of an operation (any kind but kApply
/// and kPeek) one closed rule governs: it was not carried out there.
[[nodiscard]] Answer AnswerOf(const Call& call) noexcept;

/// The Decision as JSON. Rules of another decided_by than the governing one say theirs; where a
/// failure policy alone spoke, `open` or `closed`, there are no numbers of a quota. With a status
/// of 400 and above the members of a problem (RFC 9457) come first.
void WriteAnswerJson(net::OutBuffer& out, const Answer& answer, int status);

/// The field lines of the RateLimit family that the configuration wants, if the governing rule was
/// really counted, and Retry-After and Cache-Control of a denial. `jitter`: added to Retry-After
/// before it is rounded up.
void WriteAnswerFields(net::OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter);

}  // namespace tidegate

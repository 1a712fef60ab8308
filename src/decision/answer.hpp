// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/out_buffer.hpp"
#include "rules/config.hpp"
#include "tidegate/call.hpp"
#include "tidegate/charge.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

class Identifier;
struct Rule;

/// The parts of an answer that its reader may see.
struct Disclosure {
  bool hidden_rules = true;  ///< Shadow rules and rules with `announce: false`.
  bool source = true;        ///< `decided_by` and `reason`.
};

/// The outcome of a call, the same for every frontend. Points into the call.
///
/// Frontends write an answer that DecisionCall::AnswerFor has reduced to what the reader may see:
/// `charges` and `decisions` have no hidden rule then, and `shown` is not one.
struct Answer {
  Call::Kind kind = Call::Kind::kApply;
  bool allowed = true;
  bool exempt = false;          ///< Passes uncounted, by an entry of `exempt` or an operator.
  bool denied = false;          ///< Refused by an entry of `deny` or by an operator's ban.
  std::optional<Done> applied;  ///< Only for refund, reset, renew and release.
  std::span<const Charge> charges;
  std::span<const Decision> decisions;
  const Decision* governing = nullptr;  ///< nullptr: neither a rule nor an operator decided.
  const Rule* rule = nullptr;           ///< The rule of `governing`; nullptr: an inline quota.
  /// The decision whose rule and numbers the reader sees: `governing`, or if that is hidden the one
  /// that would govern without the hidden rules. nullptr: none.
  const Decision* shown = nullptr;
  bool hides_rules = false;  ///< A hidden rule was left out.
  bool shows_source = true;  ///< `decided_by` and `reason` are written.
  /// `t` of RateLimit is written. False if the response has a Retry-After that is not ours: `t`
  /// must not be later.
  bool shows_more_after = true;
  /// Computes `pk`, a hash of the counted key, for RateLimit fields; nullptr: they have no `pk`.
  const Identifier* partitions = nullptr;

  /// The decision that `decided_by` and `reason` are about: `governing` of a denial, otherwise
  /// `shown`, so that an allowed request does not reveal that a hidden rule counted it.
  [[nodiscard]] const Decision* source() const noexcept { return allowed ? shown : governing; }
  [[nodiscard]] bool banned() const noexcept {
    return governing != nullptr && governing->reason == Reason::kBanned;
  }
  /// The HTTP status: 200; 429 over a limit; 403 denied; 503 closed by a failure policy; 404 if the
  /// lease to renew is gone. An operation that was carried out is not a denial.
  [[nodiscard]] int status() const noexcept;
  /// The seconds in Retry-After: until the same request passes, or until the ban ends, rounded up,
  /// at least 1. `jitter` is added before, but for bans, which end at a known time for one key.
  /// Nothing if the request is allowed or will never pass.
  [[nodiscard]] std::optional<std::int64_t> RetryAfter(Micros jitter) const noexcept;
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
/// differs from that of Answer::source. If `status`, the status that is sent, is 400 or above, the
/// members of a problem (RFC 9457) come first.
void WriteAnswerJson(net::OutBuffer& out, const Answer& answer, int status);

/// Writes the RateLimit header fields that the configuration selects, if the shown rule was
/// counted, and for a denial Retry-After and Cache-Control. `jitter` is that of Answer::RetryAfter.
void WriteAnswerFields(net::OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter);

/// Returns the title of the problem that `answer`, a denial, is.
[[nodiscard]] std::string_view DenialTitle(const Answer& answer) noexcept;

/// Returns the HTTP status for an Error of the store or the rules.
[[nodiscard]] int StatusOf(ErrorCode code) noexcept;

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "config/config.hpp"
#include "core/charge.hpp"
#include "net/buffers.hpp"
#include "rules/denial_spec.hpp"
#include "store/call.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

class Identifier;
struct Rule;

/// The parts of an answer that its reader may see.
struct Disclosure {
  bool hidden_rules = true;  ///< Shows shadow rules and rules with `announce: false`.
  bool source = true;        ///< Shows `decided_by` and `reason`.
};

/// The outcome of a call, the same for every frontend. Points into the call. Frontends write an
/// answer without hidden rules: DecisionCall::AnswerFor reduces it to what the reader may see.
struct Answer {
  Call::Kind kind = Call::Kind::kApply;
  bool allowed = true;
  bool exempt = false;             ///< Allowed uncounted, by an entry of `exempt` or an operator.
  bool denied = false;             ///< Denied by an entry of `deny` or by an operator's ban.
  std::optional<Applied> applied;  ///< Only for refund, reset, renew and release.
  std::span<const Charge> charges;
  std::span<const Decision> decisions;
  const Decision* governing = nullptr;  ///< nullptr: neither a rule nor an operator decided.
  const Rule* rule = nullptr;           ///< The rule of `governing`; nullptr: an inline quota.
  /// What the reader sees: `governing`, or what would govern without hidden rules; may be nullptr.
  const Decision* shown = nullptr;
  bool hides_rules = false;  ///< A hidden rule was left out.
  bool shows_source = true;  ///< `decided_by` and `reason` are written.
  /// `t` of RateLimit is written. False if an upstream's Retry-After might be earlier.
  bool shows_more_after = true;
  /// Computes `pk`, a hash of the counted key, for RateLimit fields; nullptr: they have no `pk`.
  const Identifier* partitions = nullptr;

  /// Returns the decision that `decided_by` and `reason` describe: `governing` of a denial, else
  /// `shown`, so that an allowed request does not reveal a hidden rule.
  [[nodiscard]] const Decision* source() const noexcept { return allowed ? shown : governing; }
  [[nodiscard]] bool banned() const noexcept {
    return governing != nullptr && governing->reason == Reason::kBanned;
  }
  /// Returns the HTTP status: 200 if allowed; 429 over a limit; 403 if `deny` or a ban decided; 503
  /// if the failure policy `closed` decided; 404 if the lease to renew is gone.
  [[nodiscard]] int status() const noexcept;
  /// Returns the seconds for Retry-After, at least 1: until the same request would be allowed, plus
  /// `jitter`, or until the ban ends. Nothing if the request is allowed or never will be.
  [[nodiscard]] std::optional<std::int64_t> RetryAfter(Micros jitter) const noexcept;
};

/// Returns the answer to a call that the store completed without an error. A rule whose policy
/// `closed` decided governs operations other than kApply and kPeek: they were not applied to it.
[[nodiscard]] Answer AnswerOf(const Call& call) noexcept;

/// Returns true if a quota was counted: neither an operator nor `open` or `closed` decided.
[[nodiscard]] constexpr bool IsCounted(const Decision& decision) noexcept {
  return decision.decided_by < DecidedBy::kOpen;
}

/// Writes the answer as JSON. A rule has its own `decided_by` and `reason` only if they differ from
/// Answer::source. If the HTTP status is 400 or above, members of a problem (RFC 9457) come first.
void WriteAnswerJson(net::OutBuffer& out, const Answer& answer, int status);

/// Writes the RateLimit header fields that the configuration selects, if the shown rule was
/// counted. For a denial, also writes Retry-After (with `jitter`) and Cache-Control.
void WriteAnswerFields(net::OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter);

/// Returns the title of the problem document for `answer`, which is a denial.
[[nodiscard]] std::string_view DenialTitle(const Answer& answer) noexcept;

/// Returns the HTTP status for an Error of the store or the rules.
[[nodiscard]] int StatusOf(ErrorCode code) noexcept;

/// A denial as a client of the gateway, or of a proxy that uses /v1/auth, sees it: the problem
/// document, or what a `denial` section describes. The answer and the snapshot must outlive it.
class Denial {
 public:
  /// The data of the denied request that the answer does not contain.
  struct Request {
    std::string_view id;
    std::string_view method;
    std::string_view path;
  };

  /// Uses the first `denial` that exists: the denying rule's, that of `route` (nullptr: none), or
  /// that of `responses`. `jitter` is as in Answer::RetryAfter. REQUIRES: `answer` is a denial.
  Denial(const Answer& answer, const std::optional<DenialSpec>* route,
         const Config::Responses& responses, Micros jitter);

  /// The status to send. A configured status replaces 429 only: 403 and 503 have other causes.
  [[nodiscard]] int status() const noexcept { return status_; }

  /// Writes the header fields of the denial, and those of `response_headers` that the denial lacks.
  void WriteFields(net::OutBuffer& out, std::span<const HeaderEdits::Set> response_headers) const;
  void WriteBody(net::OutBuffer& out, const Request& request) const;
  [[nodiscard]] std::string_view content_type() const noexcept {
    return spec_ != nullptr && spec_->body ? std::string_view(spec_->content_type)
                                           : "application/problem+json";
  }

 private:
  const Answer& answer_;
  const Config::Responses& responses_;
  const DenialSpec* spec_ = nullptr;  ///< nullptr: the problem document is sent.
  Micros jitter_;
  int status_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "decision/answer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "net/http_exchange.hpp"
#include "rules/identity.hpp"
#include "tidegate/limiter.hpp"

namespace tidegate {
namespace {

using net::OutBuffer;
using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string_view Bool(bool value) noexcept { return value ? "true" : "false"; }

/// Writes when to retry. `allowed` is that of the request as a whole, or of the rule being written.
void WriteWait(OutBuffer& out, const Decision& decision, bool allowed) {
  if (allowed) {
    // Nothing to wait for, even where a shadow rule would have denied the request.
  } else if (decision.never) {
    // A ban without an end may still be lifted.
    if (decision.reason != Reason::kBanned) out << R"(,"never":true)";
  } else {
    out << R"(,"retry_after_ms":)" << ceil<milliseconds>(decision.retry_after).count();
  }
}

void WriteNumbers(OutBuffer& out, const Decision& decision, bool allowed) {
  if (!IsCounted(decision)) return WriteWait(out, decision, allowed);
  out << R"(,"limit":)" << decision.limit << R"(,"remaining":)" << decision.remaining;
  WriteWait(out, decision, allowed);
  out << R"(,"reset_after_ms":)" << ceil<milliseconds>(decision.reset_after).count();
}

void WriteSource(OutBuffer& out, const Decision& decision) {
  out << R"(,"decided_by":")" << Name(decision.decided_by) << R"(","reason":")"
      << Name(decision.reason) << '"';
}

bool Violated(const Charge& charge, const Decision& decision) noexcept {
  return charge.mode == Mode::kEnforce && !decision.allowed;
}

/// Writes the names of the rules that deny the request, as far as the reader may know them.
void WriteViolatedPolicies(OutBuffer& out, const Answer& answer) {
  out << R"("violated-policies":[)";
  std::string_view last;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    if (!Violated(answer.charges[i], answer.decisions[i])) continue;
    if (answer.charges[i].rule == last) continue;  // Several values of a cookie.
    out << (last.empty() ? "\"" : ",\"") << answer.charges[i].rule << '"';
    last = answer.charges[i].rule;
  }
  if (answer.banned() && answer.shown != nullptr) out << '"' << answer.shown->rule << '"';
  out << "],";
}

/// Writes the members of a problem document. The kind of problem does not depend on `status`, which
/// a configuration may replace.
void WriteProblem(OutBuffer& out, const Answer& answer, int status) {
  constexpr std::string_view kTypes = R"("type":"https://iana.org/assignments/http-problem-types#)";
  const int kind = answer.status();
  if (kind == 429) {
    out << kTypes << R"(quota-exceeded",)";
  } else if (kind == 503) {
    out << kTypes << R"(temporary-reduced-capacity",)";
  } else if (answer.banned()) {
    out << kTypes << R"(abnormal-usage-detected",)";
  } else {
    out << R"("type":"about:blank",)";
  }
  out << R"("title":")" << DenialTitle(answer) << R"(","status":)" << status << ',';
  if (kind == 429 || kind == 503 || answer.banned()) WriteViolatedPolicies(out, answer);
  if (answer.banned()) {
    out << R"("detail":"an operator banned this client",)";
  } else if (answer.denied) {
    out << R"("detail":"an entry of `deny` refuses this request",)";
  }
  if (kind == 404) out << R"("detail":"the lease is gone: acquire it again",)";
}

std::int64_t Seconds(Micros duration) noexcept { return ceil<seconds>(duration).count(); }

/// Writes the partition key of a charge: a keyed hash, from which the key cannot be guessed.
void WritePartition(OutBuffer& out, const Answer& answer, const Charge& charge) {
  if (answer.partitions == nullptr) return;
  std::array<char, Identifier::kPartitionSize> text;
  answer.partitions->WritePartition(charge.rule, charge.identity, text);
  out << ";pk=:" << std::string_view(text.data(), text.size()) << ':';
}

void WritePolicy(OutBuffer& out, const Answer& answer, const Charge& charge) {
  const Quota& quota = *charge.quota;
  out << '"' << charge.rule << "\";q=" << quota.capacity();
  switch (quota.algorithm()) {
    case Algorithm::kConcurrency:
      out << ";qu=\"concurrent-requests\"";
      break;
    case Algorithm::kTokenBucket:
    case Algorithm::kGcra:
      out << ";w=" << Seconds(quota.recovery());
      break;
    default:
      out << ";w=" << Seconds(quota.period());
  }
  WritePartition(out, answer, charge);
}

void WriteRateLimit(OutBuffer& out, const Answer& answer) {
  out << "RateLimit-Policy: ";
  std::string_view last;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    if (!IsCounted(answer.decisions[i])) continue;
    if (answer.charges[i].rule == last) continue;  // Several values of a cookie.
    if (!last.empty()) out << ", ";
    WritePolicy(out, answer, answer.charges[i]);
    last = answer.charges[i].rule;
  }
  const Decision& shown = *answer.shown;
  out << "\r\nRateLimit: \"" << shown.rule << "\";r=" << shown.remaining;
  // `t` must not be later than Retry-After, which may be that of a hidden rule.
  const Micros more = shown.more_after;
  if (more > Micros{0} && answer.shows_more_after &&
      (answer.shown == answer.governing || answer.allowed)) {
    out << ";t=" << Seconds(more);
  }
  WritePartition(out, answer,
                 answer.charges[static_cast<std::size_t>(&shown - answer.decisions.data())]);
  out << "\r\n";
}

void WriteOlder(OutBuffer& out, std::string_view prefix, const Decision& decision,
                std::int64_t reset) {
  out << prefix << "Limit: " << decision.limit << "\r\n"
      << prefix << "Remaining: " << decision.remaining << "\r\n"
      << prefix << "Reset: " << reset << "\r\n";
}

}  // namespace

int Answer::status() const noexcept {
  if (denied) return 403;
  const bool closed = governing != nullptr && governing->decided_by == DecidedBy::kClosed;
  if (kind == Call::Kind::kApply || kind == Call::Kind::kPeek) {
    if (allowed) return 200;
    return closed ? 503 : 429;
  }
  if (governing == nullptr) return 200;
  if (closed) return 503;
  // 404 makes the holder stop, and an open rule does not know that the lease is gone.
  const bool gone = kind == Call::Kind::kRenew && applied != Done::kApplied;
  return gone && governing->decided_by != DecidedBy::kOpen ? 404 : 200;
}

std::optional<std::int64_t> Answer::RetryAfter(Micros jitter) const noexcept {
  if (allowed || governing == nullptr || governing->never) return std::nullopt;
  // A ban ends for one key at a known time: there is no crowd to spread.
  const Micros wait = governing->retry_after + (banned() ? Micros{0} : jitter);
  return std::max<std::int64_t>(1, Seconds(wait));
}

std::string_view DenialTitle(const Answer& answer) noexcept {
  const int kind = answer.status();
  if (kind == 429) return "Quota exceeded";
  if (kind == 503) return "Temporarily reduced capacity";
  return answer.banned() ? "Abnormal usage detected" : net::ReasonPhrase(kind);
}

int StatusOf(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kUnknownRule:
      return 404;
    case ErrorCode::kTooManyRules:
      return 500;
    case ErrorCode::kExhausted:
    case ErrorCode::kNetwork:
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 400;
  }
}

Answer AnswerOf(const Call& call) noexcept {
  Answer answer{.kind = call.kind,
                .allowed = call.allowed,
                .applied = {},
                .charges = call.charges,
                .decisions = call.decisions,
                .governing = &Governing(call.charges, call.decisions)};
  answer.shown = answer.governing;
  switch (call.kind) {
    case Call::Kind::kRefund:
    case Call::Kind::kReset:
    case Call::Kind::kRenew:
    case Call::Kind::kRelease:
      answer.applied = call.done;
      break;
    case Call::Kind::kDebit:
      break;
    default:
      return answer;
  }
  // An operation is applied to each rule separately. If one rule is closed, the operation was not
  // applied there, and that rule governs.
  for (std::size_t i = 0; i < call.decisions.size(); ++i) {
    const Decision& decision = call.decisions[i];
    if (decision.decided_by != DecidedBy::kClosed) continue;
    if (call.charges[i].mode == Mode::kShadow) continue;  // A shadow rule refuses nothing.
    answer.allowed = false;
    answer.governing = answer.shown = &decision;
    break;
  }
  return answer;
}

void WriteAnswerJson(OutBuffer& out, const Answer& answer, int status) {
  out << '{';
  if (status >= 400) WriteProblem(out, answer, status);
  out << R"("allowed":)" << Bool(answer.allowed);
  if (answer.applied) out << R"(,"applied":)" << Bool(*answer.applied == Done::kApplied);
  if (answer.exempt) out << R"(,"exempt":true)";
  if (answer.denied) out << R"(,"denied":true)";
  if (answer.banned()) out << R"(,"banned":true)";
  // Position and size of the shown rule's numbers in `out`; the list of rules repeats them.
  std::size_t numbers = 0;
  std::size_t size = 0;
  if (answer.shown != nullptr && (answer.shown == answer.governing || answer.allowed)) {
    out << R"(,"rule":")" << answer.shown->rule << '"';
    numbers = out.size();
    WriteNumbers(out, *answer.shown, answer.allowed);
    size = out.size() - numbers;
  } else if (answer.governing != nullptr) {
    // A hidden rule denies: no other rule explains it.
    WriteWait(out, *answer.governing, answer.allowed);
  }
  const Decision* const source = answer.shows_source ? answer.source() : nullptr;
  if (source != nullptr) WriteSource(out, *source);
  out << R"(,"rules":[)";
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const bool shadow = answer.charges[i].mode == Mode::kShadow;
    out << (i == 0 ? R"({"rule":")" : R"(,{"rule":")") << answer.charges[i].rule
        << (shadow ? R"(","mode":"shadow","allowed":)" : R"(","mode":"enforce","allowed":)")
        << Bool(answer.decisions[i].allowed);
    const Decision& decision = answer.decisions[i];
    if (&decision == answer.governing && &decision == answer.shown &&
        decision.allowed == answer.allowed) {
      char* const copy = out.Reserve(size);
      std::memcpy(copy, out.view().data() + numbers, size);
      out.Advance(size);
    } else {
      WriteNumbers(out, decision, decision.allowed);
      if (source != nullptr && decision.decided_by != source->decided_by) {
        WriteSource(out, decision);
      }
    }
    out << '}';
  }
  out << "]}";
}

void WriteAnswerFields(OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter) {
  if (answer.shown != nullptr && IsCounted(*answer.shown)) {
    const Decision& decision = *answer.shown;
    if (responses.ratelimit) WriteRateLimit(out, answer);
    const std::int64_t reset = Seconds(decision.reset_after);
    if (responses.ratelimit_legacy) WriteOlder(out, "RateLimit-", decision, reset);
    if (responses.x_ratelimit) {
      const bool epoch = responses.x_reset == Config::Responses::XReset::kEpoch;
      WriteOlder(out, "X-RateLimit-", decision,
                 epoch ? static_cast<std::int64_t>(std::time(nullptr)) + reset : reset);
    }
  }
  const Decision* const source = answer.shows_source ? answer.source() : nullptr;
  if (source != nullptr && source->decided_by != DecidedBy::kStore &&
      source->decided_by != DecidedBy::kCache) {
    out << "X-Tidegate-Decided-By: " << Name(source->decided_by) << "\r\n";
  }
  if (status < 400) return;
  if (const auto wait = answer.RetryAfter(jitter)) out << "Retry-After: " << *wait << "\r\n";
  out << "Cache-Control: no-store\r\n";
}

}  // namespace tidegate

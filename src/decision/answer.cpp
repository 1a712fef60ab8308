// SPDX-License-Identifier: Apache-2.0
#include "decision/answer.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "net/http_exchange.hpp"
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

void WriteProblem(OutBuffer& out, const Answer& answer, int status) {
  if (status == 429) {
    out << R"("type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
        << R"("title":"Quota exceeded","status":429,"violated-policies":[)";
    std::string_view last;
    for (std::size_t i = 0; i < answer.charges.size(); ++i) {
      if (!Violated(answer.charges[i], answer.decisions[i])) continue;
      if (answer.charges[i].rule == last) continue;  // Several values of a cookie.
      out << (last.empty() ? "\"" : ",\"") << answer.charges[i].rule << '"';
      last = answer.charges[i].rule;
    }
    out << "],";
  } else if (status == 503) {
    out << R"("type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
        << R"("title":"Temporarily reduced capacity","status":503,)";
  } else {
    out << R"("type":"about:blank","title":")" << net::ReasonPhrase(status) << R"(","status":)"
        << status << ',';
    if (answer.banned()) {
      out << R"("detail":"an operator banned this client",)";
    } else if (answer.denied) {
      out << R"("detail":"an entry of `deny` refuses this request",)";
    }
    if (status == 404) out << R"("detail":"the lease is gone: acquire it again",)";
  }
}

std::int64_t Seconds(Micros duration) noexcept { return ceil<seconds>(duration).count(); }

void WritePolicy(OutBuffer& out, const Charge& charge) {
  const Quota& quota = *charge.quota;
  out << '"' << charge.rule << "\";q=" << quota.capacity();
  switch (quota.algorithm()) {
    case Algorithm::kConcurrency:
      out << ";qu=\"concurrent-requests\"";
      return;
    case Algorithm::kTokenBucket:
    case Algorithm::kGcra:
      out << ";w=" << Seconds(quota.recovery());
      return;
    default:
      out << ";w=" << Seconds(quota.period());
  }
}

void WriteRateLimit(OutBuffer& out, const Answer& answer) {
  out << "RateLimit-Policy: ";
  std::string_view last;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    if (!IsCounted(answer.decisions[i])) continue;
    if (answer.charges[i].rule == last) continue;  // Several values of a cookie.
    if (!last.empty()) out << ", ";
    WritePolicy(out, answer.charges[i]);
    last = answer.charges[i].rule;
  }
  out << "\r\nRateLimit: \"" << answer.governing->rule << "\";r=" << answer.governing->remaining;
  if (answer.governing->more_after > Micros{0}) {
    out << ";t=" << Seconds(answer.governing->more_after);
  }
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

int StatusOf(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kUnknownRule:
      return 404;
    case ErrorCode::kTooManyRules:
      return 500;
    case ErrorCode::kExhausted:
    case ErrorCode::kNetwork:
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
  for (const Decision& decision : call.decisions) {
    if (decision.decided_by != DecidedBy::kClosed) continue;
    answer.allowed = false;
    answer.governing = &decision;
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
  // Position and size of the governing rule's numbers in `out`; the list of rules repeats them.
  std::size_t numbers = 0;
  std::size_t size = 0;
  if (answer.governing != nullptr) {
    out << R"(,"rule":")" << answer.governing->rule << '"';
    numbers = out.size();
    WriteNumbers(out, *answer.governing, answer.allowed);
    size = out.size() - numbers;
    WriteSource(out, *answer.governing);
  }
  out << R"(,"rules":[)";
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const bool shadow = answer.charges[i].mode == Mode::kShadow;
    out << (i == 0 ? R"({"rule":")" : R"(,{"rule":")") << answer.charges[i].rule
        << (shadow ? R"(","mode":"shadow","allowed":)" : R"(","mode":"enforce","allowed":)")
        << Bool(answer.decisions[i].allowed);
    const Decision& decision = answer.decisions[i];
    if (&decision == answer.governing && decision.allowed == answer.allowed) {
      char* const copy = out.Reserve(size);
      std::memcpy(copy, out.view().data() + numbers, size);
      out.Advance(size);
    } else {
      WriteNumbers(out, decision, decision.allowed);
      if (decision.decided_by != answer.governing->decided_by) WriteSource(out, decision);
    }
    out << '}';
  }
  out << "]}";
}

void WriteAnswerFields(OutBuffer& out, const Answer& answer, int status,
                       const Config::Responses& responses, Micros jitter) {
  if (answer.governing != nullptr && IsCounted(*answer.governing)) {
    const Decision& decision = *answer.governing;
    if (responses.ratelimit) WriteRateLimit(out, answer);
    const std::int64_t reset = Seconds(decision.reset_after);
    if (responses.ratelimit_legacy) WriteOlder(out, "RateLimit-", decision, reset);
    if (responses.x_ratelimit) {
      const bool epoch = responses.x_reset == Config::Responses::XReset::kEpoch;
      WriteOlder(out, "X-RateLimit-", decision,
                 epoch ? static_cast<std::int64_t>(std::time(nullptr)) + reset : reset);
    }
  }
  if (answer.governing != nullptr && answer.governing->decided_by != DecidedBy::kStore &&
      answer.governing->decided_by != DecidedBy::kCache) {
    out << "X-Tidegate-Decided-By: " << Name(answer.governing->decided_by) << "\r\n";
  }
  if (status < 400) return;
  if (!answer.allowed && answer.governing != nullptr && !answer.governing->never) {
    // A ban ends for one key at a known time: there is no crowd to spread.
    const Micros wait = answer.governing->retry_after + (answer.banned() ? Micros{0} : jitter);
    out << "Retry-After: " << std::max<std::int64_t>(1, Seconds(wait)) << "\r\n";
  }
  out << "Cache-Control: no-store\r\n";
}

}  // namespace tidegate

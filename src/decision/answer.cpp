// SPDX-License-Identifier: Apache-2.0
#include "decision/answer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "identity/identity.hpp"
#include "net/http_exchange.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

namespace {

using net::OutBuffer;
using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string_view Bool(bool value) noexcept { return value ? "true" : "false"; }

/// Writes the times to wait of `decision`. `allowed`: the request, or the listed rule, is allowed.
void WriteWait(OutBuffer& out, const Decision& decision, bool allowed) {
  if (allowed) {
    // There is nothing to wait for, even if a shadow rule would have denied the request.
  } else if (decision.never) {
    // `never` is omitted for a ban without an end, because the ban may still be lifted.
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

/// Writes the names of the rules that deny the request and that the reader may know.
void WriteViolatedPolicies(OutBuffer& out, const Answer& answer) {
  out << R"("violated-policies":[)";
  std::string_view last;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    if (!Violated(answer.charges[i], answer.decisions[i])) continue;
    if (answer.charges[i].rule == last) continue;  // A cookie has several values.
    out << (last.empty() ? "\"" : ",\"") << answer.charges[i].rule << '"';
    last = answer.charges[i].rule;
  }
  if (answer.banned() && answer.shown != nullptr) out << '"' << answer.shown->rule << '"';
  out << "],";
}

/// Writes the members of a problem document. Its type does not depend on `status`, which is sent.
void WriteProblem(OutBuffer& out, const Answer& answer, int status) {
  constexpr std::string_view kTypes = R"("type":"https://iana.org/assignments/http-problem-types#)";
  const int kind = answer.status();
  const std::string_view type = kind == 429       ? "quota-exceeded"
                                : kind == 503     ? "temporary-reduced-capacity"
                                : answer.banned() ? "abnormal-usage-detected"
                                                  : "";
  out << (type.empty() ? R"("type":"about:blank)" : kTypes) << type << R"(","title":")"
      << DenialTitle(answer) << R"(","status":)" << status << ',';
  if (!type.empty()) WriteViolatedPolicies(out, answer);
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
    case Algorithm::kConcurrency: out << ";qu=\"concurrent-requests\""; break;
    case Algorithm::kTokenBucket:
    case Algorithm::kGcra: out << ";w=" << Seconds(quota.recovery()); break;
    default: out << ";w=" << Seconds(quota.period());
  }
  WritePartition(out, answer, charge);
}

void WriteRateLimit(OutBuffer& out, const Answer& answer) {
  out << "RateLimit-Policy: ";
  std::string_view last;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    if (!IsCounted(answer.decisions[i])) continue;
    if (answer.charges[i].rule == last) continue;  // A cookie has several values.
    if (!last.empty()) out << ", ";
    WritePolicy(out, answer, answer.charges[i]);
    last = answer.charges[i].rule;
  }
  const Decision& shown = *answer.shown;
  out << "\r\nRateLimit: \"" << shown.rule << "\";r=" << shown.remaining;
  // `t` must not be later than Retry-After, which a hidden rule may determine.
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
  // 404 makes the lease's holder stop. An open rule does not know whether the lease is gone.
  const bool gone = kind == Call::Kind::kRenew && applied != Applied::kYes;
  return gone && governing->decided_by != DecidedBy::kOpen ? 404 : 200;
}

std::optional<std::int64_t> Answer::RetryAfter(Micros jitter) const noexcept {
  if (allowed || governing == nullptr || governing->never) return std::nullopt;
  // A ban ends for one key at a known time, so there are no retries of many clients to spread.
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
    case ErrorCode::kUnknownRule: return 404;
    case ErrorCode::kTooManyRules: return 500;
    case ErrorCode::kExhausted:
    case ErrorCode::kNetwork:
    case ErrorCode::kUnavailable: return 503;
    default: return 400;
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
  if (call.kind == Call::Kind::kApply || call.kind == Call::Kind::kPeek) return answer;
  if (call.kind != Call::Kind::kDebit) answer.applied = call.applied;
  // An operation is applied to each rule by itself: a closed rule, which did not apply it, governs.
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
  if (answer.applied) out << R"(,"applied":)" << Bool(*answer.applied == Applied::kYes);
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
    // A hidden rule denies, and the numbers of another rule would not explain it.
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

Denial::Denial(const Answer& answer, const std::optional<DenialSpec>* route,
               const Config::Responses& responses, Micros jitter)
    : answer_(answer), responses_(responses), jitter_(jitter), status_(answer.status()) {
  if (answer.rule != nullptr && answer.rule->denial) {
    spec_ = &*answer.rule->denial;
  } else if (route != nullptr && *route) {
    spec_ = &**route;
  } else if (responses.denial) {
    spec_ = &*responses.denial;
  }
  if (status_ == 429 && spec_ != nullptr) status_ = spec_->status.value_or(status_);
}

void Denial::WriteFields(net::OutBuffer& out,
                         std::span<const HeaderEdits::Set> response_headers) const {
  WriteAnswerFields(out, answer_, status_, responses_, jitter_);
  for (const HeaderEdits::Set& field : response_headers) {
    const bool ours =
        IsDenialField(field.name) ||
        (spec_ != nullptr && std::ranges::find(spec_->headers, field.name,
                                               &HeaderEdits::Set::name) != spec_->headers.end());
    if (!ours) out << field.name << ": " << field.value << "\r\n";
  }
  if (spec_ == nullptr) return;
  for (const HeaderEdits::Set& field : spec_->headers) {
    out << field.name << ": " << field.value << "\r\n";
  }
  if (!spec_->link.empty()) out << "Link: <" << spec_->link << ">; rel=\"help\"\r\n";
}

void Denial::WriteBody(net::OutBuffer& out, const Request& request) const {
  if (spec_ == nullptr || !spec_->body) {
    WriteAnswerJson(out, answer_, status_);
    out << '\n';
    return;
  }
  BodyValues values{.retry_after = answer_.RetryAfter(jitter_),
                    .request_id = request.id,
                    .link = spec_->link,
                    .status = status_,
                    .title = DenialTitle(answer_),
                    .method = request.method,
                    .path = request.path};
  // Use only the rule that denies: the numbers of another rule would not explain the denial.
  if (answer_.shown != nullptr && answer_.shown == answer_.governing) {
    values.rule = answer_.shown->rule;
    if (IsCounted(*answer_.shown)) {
      values.limit = answer_.shown->limit;
      values.remaining = answer_.shown->remaining;
    }
  }
  spec_->body->Write(out, values);
}

}  // namespace tidegate

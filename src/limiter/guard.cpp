// SPDX-License-Identifier: Apache-2.0
#include "limiter/guard.hpp"

#include <exception>
#include <utility>

#include "limiter/request_key.hpp"
#include "store/charge_check.hpp"

namespace tidegate {
namespace {

using redis::Client;

/// What a server says, fit for a line of a log.
std::string Shortened(std::string_view text) {
  constexpr std::size_t kMost = 400;
  std::string line(text.substr(0, kMost));
  for (char& c : line) {
    if (c < ' ' || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? line + "..." : line;
}

Operation OperationOf(Call::Kind kind) noexcept {
  switch (kind) {
    case Call::Kind::kApply:
      return Operation::kApply;
    case Call::Kind::kDebit:
      return Operation::kDebit;
    case Call::Kind::kRefund:
      return Operation::kRefund;
    case Call::Kind::kRenew:
    case Call::Kind::kRelease:
      return Operation::kLease;
    default:
      return Operation::kKey;
  }
}

}  // namespace

Guard::Guard(net::Reactor& reactor, Options options, Store& local)
    : options_(std::move(options)),
      policy_(local, options_.nodes),
      register_(redis::KeyNames(options_.redis.prefix).Overrides()),
      client_(reactor, options_.redis, fingerprinter_, *this),
      spans_(
          client_, fingerprinter_, policy_, cache_,
          [this](const Call& denied, Client::Clock::time_point sent) { Keep(denied, sent); },
          stats_) {}

std::optional<Error> Guard::Prepare(Call& call) {
  if (call.kind == Call::Kind::kApply) {
    if (auto bad = CheckRequest(call.charges, 1, call.decisions)) return bad;
    return Identify(fingerprinter_, call);
  }
  if (call.charges.empty() || call.charges.size() > kMaxCharges ||
      call.decisions.size() != call.charges.size()) {
    return Error{ErrorCode::kBadCharge, "a call needs 1 to " + std::to_string(kMaxCharges) +
                                            " charges, and a decision for each"};
  }
  for (const Charge& charge : call.charges) {
    if (auto bad = CheckCharge(charge, OperationOf(call.kind))) return bad;
  }
  if (call.kind == Call::Kind::kRefund && call.refund.id.empty()) {
    return Error{ErrorCode::kBadCharge, "a refund needs an id, so that it is applied only once"};
  }
  return std::nullopt;
}

void Guard::Start(Call& call) noexcept {
  try {
    call.record.span = nullptr;
    call.not_executed = false;
    if (auto bad = Prepare(call)) {
      call.error = std::move(bad);
      return call.finished(call);
    }
    if (DenyCache::MayKeep(call) && cache_.Find(call, redis::Client::Clock::now())) {
      stats_.cache_hits.Add();
      return call.finished(call);
    }
    if (held_) {
      call.not_executed = true;
      return OnFailed(call, redis::Reason::kBreakerOpen);
    }
    call.record.since = 0;
    Ask(call);
  } catch (const std::exception&) {
    // Only memory can be missing, and only before the call was taken.
    call.error.emplace(Error{ErrorCode::kExhausted, {}});
    call.finished(call);
  }
}

void Guard::Ask(Call& call) {
  if (client_.divides()) {
    Client::Parts parts;
    client_.Divide(call, parts);
    if (parts.count > 1) return spans_.Start(call, parts);
  }
  if (call.record.since == 0) return client_.Submit(call);
  client_.Resume(call);
}

void Guard::OnSplit(Call& call) {
  if (call.record.span != nullptr) return static_cast<Partial*>(call.record.span)->OnSplit(call);
  Ask(call);
}

void Guard::OnAnswered(Call& call, Client::Clock::time_point sent, bool told) {
  // Of a part too, and now: refunds that come after it are heard of after it.
  if (!call.allowed && told && DenyCache::MayKeep(call)) Keep(call, sent);
  if (call.record.span != nullptr) return static_cast<Partial*>(call.record.span)->OnAnswered(call);
  call.finished(call);
}

void Guard::Keep(const Call& denied, Client::Clock::time_point sent) {
  std::array<std::uint64_t, DenyCache::kMostCharges> keys;
  for (std::size_t i = 0; i < denied.charges.size(); ++i) {
    key_.clear();
    redis::KeyNames::AppendSubject(key_, denied.charges[i].rule, denied.charges[i].identity);
    keys[i] = DenyCache::HashOf(key_);
  }
  cache_.Insert(denied, std::span(keys).first(denied.charges.size()), sent);
}

void Guard::OnFailed(Call& call, redis::Reason reason) {
  if (call.record.span != nullptr) {
    return static_cast<Partial*>(call.record.span)->OnFailed(call, reason);
  }
  policy_.Answer(call);
  if (!call.error) {
    for (Decision& decision : call.decisions) {
      decision.reason = redis::DecisionReason(reason);
      stats_.CountFailure(call.kind, decision.decided_by, reason);
    }
  }
  call.finished(call);
}

void Guard::OnInvalidated(std::string_view key) {
  if (key.empty()) {
    cache_.Clear();
  } else if (key == register_) {
    options_.on_register();
  } else {
    key_.clear();
    if (client_.names().AppendSubjectOf(key_, key)) cache_.Invalidate(DenyCache::HashOf(key_));
  }
}

void Guard::ForgetDenials(std::string_view rule, std::string_view identity) {
  key_.clear();
  redis::KeyNames::AppendSubject(key_, rule, identity);
  cache_.Invalidate(DenyCache::HashOf(key_));
}

void Guard::OnConnections() {
  // What is published while there is no subscription is heard by nobody here.
  cache_.Clear();
}

void Guard::OnNotice(Notice notice, redis::ErrorKind kind, const std::string& where,
                     const std::string& text) {
  std::string words;
  Severity severity = Severity::kWarning;
  switch (notice) {
    case Notice::kUp:
      severity = Severity::kInfo;
      words = "connected to Redis at " + where;
      break;
    case Notice::kDown:
      // A certificate does not mend itself.
      if (kind == redis::ErrorKind::kTls) severity = Severity::kError;
      words = Shortened(text);
      break;
    case Notice::kError:
      severity = Severity::kError;
      words = "Redis at " + where + " refuses to decide (" + std::string(redis::Name(kind)) +
              "); failure policies answer: " + Shortened(text);
      break;
    case Notice::kHealed:
      words =
          "keys in Redis at " + where + " held something that is not their state; they were reset";
      break;
    case Notice::kFailedWrites:
      words = "Redis at " + where +
              " carried a script's writes out only in part: does its user lack a permission?";
      break;
  }
  // Of nodes that come and go there are never many; whoever names new ones forever fills no memory.
  if (last_said_.size() > 256) last_said_.clear();
  // Of refusals the kind counts: what Redis says of each may differ.
  std::string what = notice == Notice::kError ? std::string(redis::Name(kind)) : words;
  std::string& last = last_said_[where];
  if (what == last) return;
  options_.log(severity, words);
  last = std::move(what);
}

}  // namespace tidegate

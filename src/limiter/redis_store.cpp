// SPDX-License-Identifier: Apache-2.0
#include "limiter/redis_store.hpp"

#include <exception>
#include <utility>

#include "store/charge_check.hpp"

namespace tidegate {
namespace {

using redis::Client;

/// Returns a server's text in a form that fits a line of a log.
std::string Shortened(std::string_view text) {
  constexpr std::size_t kMost = 400;
  std::string line(text.substr(0, kMost));
  for (char& c : line) {
    if (c < ' ' || c == 0x7f) c = '?';
  }
  return text.size() > kMost ? line + "..." : line;
}

}  // namespace

RedisStore::RedisStore(net::Reactor& reactor, Options options, Store& local)
    : options_(std::move(options)),
      policy_(local, options_.nodes),
      register_(redis::KeyNames(options_.redis.prefix).Overrides()),
      client_(reactor, options_.redis, fingerprinter_, *this),
      cross_slot_calls_(client_, fingerprinter_, policy_, cache_, stats_) {}

std::optional<Error> RedisStore::Prepare(Call& call) {
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
    if (auto bad = CheckCharge(charge, call.kind)) return bad;
  }
  if (call.kind == Call::Kind::kRefund && call.refund.id.empty()) {
    return Error{ErrorCode::kBadCharge, "a refund needs an id, so that it is applied only once"};
  }
  return std::nullopt;
}

void RedisStore::Start(Call& call) noexcept {
  try {
    call.record.owner = nullptr;
    call.not_executed = false;
    if (auto bad = Prepare(call)) {
      call.error = std::move(bad);
      return call.finished(call);
    }
    if (cache_.Find(call, redis::Client::Clock::now())) {
      stats_.cache_hits.Add();
      return call.finished(call);
    }
    if (held_) {
      call.not_executed = true;
      return OnFailed(call, redis::Reason::kBreakerOpen);
    }
    call.record.since = 0;
    Send(call);
  } catch (const std::exception&) {
    // Only an allocation can fail, and only before the client took the call.
    call.error.emplace(Error{ErrorCode::kExhausted, {}});
    call.finished(call);
  }
}

void RedisStore::Send(Call& call) {
  if (client_.divides()) {
    Client::Parts parts;
    client_.Divide(call, parts);
    if (parts.count > 1) return cross_slot_calls_.Start(call, parts);
  }
  if (call.record.since == 0) return client_.Submit(call);
  client_.Resume(call);
}

void RedisStore::OnAnswered(Call& call, Client::Clock::time_point sent, bool subscribed) {
  // Keep the denial now, even that of a part: later refunds of Redis are received later.
  if (!call.allowed && subscribed) cache_.Insert(call, sent);
  if (call.record.owner != nullptr) return call.record.owner->OnAnswered(call);
  call.finished(call);
}

void RedisStore::OnFailed(Call& call, redis::Reason reason) {
  if (call.record.owner != nullptr) return call.record.owner->OnFailed(call, reason);
  policy_.Answer(call);
  if (!call.error) {
    for (Decision& decision : call.decisions) {
      decision.reason = redis::DecisionReason(reason);
      stats_.CountFailure(call.kind, decision.decided_by, reason);
    }
  }
  call.finished(call);
}

void RedisStore::OnInvalidated(std::string_view key) {
  if (key.empty()) {
    cache_.Clear();
  } else if (key == register_) {
    options_.on_register();
  } else {
    subject_.clear();
    if (client_.names().AppendSubjectOf(subject_, key)) cache_.Invalidate(subject_);
  }
}

void RedisStore::OnNotice(Notice notice, redis::ErrorKind kind, const std::string& where,
                          const std::string& text) {
  std::string words;
  Severity severity = Severity::kWarning;
  switch (notice) {
    case Notice::kUp:
      severity = Severity::kInfo;
      words = "connected to Redis at " + where;
      break;
    case Notice::kDown:
      // A TLS problem, such as an expired certificate, does not go away by itself.
      if (kind == redis::ErrorKind::kTls) severity = Severity::kError;
      words = Shortened(text);
      break;
    case Notice::kError:
      severity = Severity::kError;
      words = "Redis at " + where + " rejects decisions (" + std::string(redis::Name(kind)) +
              "); failure policies apply: " + Shortened(text);
      break;
    case Notice::kHealed:
      words = "keys in Redis at " + where + " had content that is not a valid state and were reset";
      break;
    case Notice::kFailedWrites:
      words = "Redis at " + where +
              " applied only part of a script's writes; check the permissions of the Redis user";
      break;
  }
  // There are few nodes, even if they change; a server that keeps naming new ones must not fill
  // memory.
  if (last_logged_.size() > 256) last_logged_.clear();
  // Refusals of the same kind count as the same message: their texts may differ.
  std::string what = notice == Notice::kError ? std::string(redis::Name(kind)) : words;
  std::string& last = last_logged_[where];
  if (what == last) return;
  options_.log(severity, words);
  last = std::move(what);
}

}  // namespace tidegate

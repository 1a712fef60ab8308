// SPDX-License-Identifier: Apache-2.0
#include "limiter/guard.hpp"

#include <exception>
#include <utility>

#include "store/charge_check.hpp"

namespace tidegate {
namespace {

using redis::Client;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
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
      client_(reactor, options_.redis, fingerprinter_, *this) {}

std::optional<Error> Guard::Prepare(Call& call) {
  if (call.kind == Call::Kind::kApply) {
    if (auto bad = CheckRequest(call.charges, 1, call.decisions)) return bad;
    return Identify(call);
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

std::optional<Error> Guard::Identify(Call& call) {
  std::array<Fingerprint, kMaxCharges> keys;
  std::uint64_t low = 0;
  std::uint64_t high = call.charges.size();
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    const Quota& quota = *charge.quota;
    keys[i] = fingerprinter_.Key(quota.algorithm(), charge.rule, charge.identity);
    for (std::size_t j = 0; j < i; ++j) {
      if (keys[j] == keys[i]) {
        return Error{ErrorCode::kBadCharge,
                     "two charges of one request name the same key of rule '" +
                         std::string(charge.rule) + "'; give each a rule of its own"};
      }
    }
    // The fingerprints are keyed by a secret: nobody outside can find two requests that meet.
    const auto cost =
        static_cast<std::uint64_t>(charge.cost) << 1 | (charge.mode == Mode::kShadow ? 1u : 0u);
    const std::uint64_t shape = Mix(static_cast<std::uint64_t>(quota.limit()),
                                    static_cast<std::uint64_t>(quota.period().count())) +
                                static_cast<std::uint64_t>(quota.capacity());
    low = Mix(low ^ keys[i].low, cost ^ shape);
    high = Mix(high + keys[i].high, keys[i].low ^ Mix(shape, cost));
    if (!charge.lease.empty() && quota.algorithm() == Algorithm::kConcurrency) {
      const Fingerprint lease = fingerprinter_.Id(keys[i], charge.lease);
      low = Mix(low, lease.low);
      high = Mix(high, lease.high);
    }
  }
  call.record.request = {low, high};
  return std::nullopt;
}

void Guard::Start(Call& call) noexcept {
  try {
    if (auto bad = Prepare(call)) {
      call.error = std::move(bad);
      return call.finished(call);
    }
    if (may_cache_ && DenyCache::MayKeep(call) && cache_.Find(call, redis::Client::Clock::now())) {
      stats_.cache_hits.Add();
      return call.finished(call);
    }
    if (held_) return OnFailed(call, redis::Reason::kBreakerOpen);
    client_.Submit(call);
  } catch (const std::exception&) {
    // Only memory can be missing, and only before the call was taken.
    call.error.emplace(Error{ErrorCode::kExhausted, {}});
    call.finished(call);
  }
}

void Guard::OnAnswered(Call& call, Client::Clock::time_point sent) {
  if (!call.allowed && may_cache_ && DenyCache::MayKeep(call)) Keep(call, sent);
  call.finished(call);
}

void Guard::Keep(const Call& denied, Client::Clock::time_point sent) {
  std::array<std::uint64_t, DenyCache::kMostCharges> keys;
  for (std::size_t i = 0; i < denied.charges.size(); ++i) {
    key_.clear();
    client_.names().AppendKey(key_, denied.charges[i]);
    keys[i] = DenyCache::HashOf(key_);
  }
  cache_.Insert(denied, std::span(keys).first(denied.charges.size()), sent);
}

void Guard::OnFailed(Call& call, redis::Reason reason) {
  policy_.Answer(call);
  if (!call.error) {
    for (const Decision& decision : call.decisions) {
      stats_.failures[static_cast<std::size_t>(decision.rung)][static_cast<std::size_t>(reason)]
          .Add();
    }
  }
  call.finished(call);
}

void Guard::OnInvalidated(std::string_view key) {
  if (key.empty()) {
    cache_.Clear();
  } else {
    cache_.Invalidate(DenyCache::HashOf(key));
  }
}

void Guard::OnSubscribed(bool subscribed) {
  // What was published before the subscription was heard by nobody here.
  cache_.Clear();
  may_cache_ = subscribed;
}

void Guard::OnNotice(Notice notice, redis::ErrorKind kind, std::string_view text) {
  std::string words;
  Severity severity = Severity::kWarning;
  switch (notice) {
    case Notice::kUp:
      severity = Severity::kInfo;
      words = "connected to Redis at " + options_.redis.url.Shown();
      break;
    case Notice::kDown:
      words = text;
      break;
    case Notice::kError:
      severity = Severity::kError;
      words = "Redis refuses to decide (" + std::string(redis::Name(kind)) +
              "); failure policies answer: " + std::string(text);
      break;
    case Notice::kHealed:
      words = "keys held something that is not their state; they were reset";
      break;
    case Notice::kFailedWrites:
      words = "Redis carried a script's writes out only in part: does its user lack a permission?";
      break;
  }
  if (words == last_said_) return;
  options_.log(severity, words);
  last_said_ = std::move(words);
}

}  // namespace tidegate

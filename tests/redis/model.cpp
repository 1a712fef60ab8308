// SPDX-License-Identifier: Apache-2.0
#include "redis/model.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/quota_scale.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"

namespace tidegate::redis_test {
namespace {

using Hash = std::array<std::int64_t, 3>;

std::int64_t Tick(Time time) { return time.time_since_epoch().count(); }
Time At(std::int64_t tick) { return Time{Micros{tick}}; }

Hash ToHash(const token_bucket::State& s) { return {s.tokens, Tick(s.last_refill), s.rest}; }
Hash ToHash(const gcra::State& s) { return {Tick(s.tat), s.rest, s.owed}; }
Hash ToHash(const fixed_window::State& s) { return {Tick(s.start), s.count, 0}; }
Hash ToHash(const sliding_window::State& s) { return {Tick(s.start), s.current, s.previous}; }

token_bucket::State Bucket(const Hash& h) { return {h[0], At(h[1]), h[2]}; }
gcra::State Arrival(const Hash& h) { return {At(h[0]), h[1], h[2]}; }
fixed_window::State Fixed(const Hash& h) { return {At(h[0]), h[1]}; }
sliding_window::State Sliding(const Hash& h) { return {At(h[0]), h[1], h[2]}; }

/// Capacity that is enough for every list in these tests.
constexpr std::uint32_t kRoom = 4096;

/// A sliding log of src/core, filled with the entries of a stored one.
struct CoreLog {
  explicit CoreLog(const Stored& stored) : memory(kRoom), log(memory.data(), kRoom) {
    for (const auto& entry : stored.log) log.PushBack(entry);
  }
  [[nodiscard]] std::vector<sliding_log::Entry> Entries() const {
    std::vector<sliding_log::Entry> entries;
    for (std::uint32_t i = 0; i < log.size(); ++i) entries.push_back(log[i]);
    return entries;
  }
  std::vector<sliding_log::Entry> memory;
  sliding_log::Log log;
};

struct CoreLeases {
  explicit CoreLeases(const Stored& stored) : memory(kRoom), leases(memory.data(), kRoom) {
    for (const auto& lease : stored.leases) leases.Insert(lease);
  }
  [[nodiscard]] std::vector<concurrency::Lease> All() const {
    return {leases.all().begin(), leases.all().end()};
  }
  std::vector<concurrency::Lease> memory;
  concurrency::Leases leases;
};

/// Stores the next state of a hash if the step has changed it.
template <class State>
Outcome Keep(Stored& stored, const Stepped<State>& stepped) {
  if (stepped.outcome.effect != Effect::kNone) stored.hash = ToHash(stepped.next);
  return stepped.outcome;
}

Outcome StepStored(Stored& s, const Quota& q, std::int64_t cost, std::int64_t count,
                   const std::string& lease, Time now) {
  switch (s.algorithm) {
    case Algorithm::kTokenBucket:
      return Keep(s, token_bucket::Step(Bucket(s.hash), q, cost, count, now));
    case Algorithm::kGcra: return Keep(s, gcra::Step(Arrival(s.hash), q, cost, count, now));
    case Algorithm::kFixedWindow:
      return Keep(s, fixed_window::Step(Fixed(s.hash), q, cost, count, now));
    case Algorithm::kSlidingWindow:
      return Keep(s, sliding_window::Step(Sliding(s.hash), q, cost, count, now));
    case Algorithm::kSlidingLog: {
      CoreLog core(s);
      const auto plan = sliding_log::Step(core.log, q, cost, count, now);
      if (plan.outcome.effect != Effect::kNone) {
        sliding_log::Commit(core.log, q, plan.change);
        s.log = core.Entries();
      }
      return plan.outcome;
    }
    case Algorithm::kConcurrency: {
      CoreLeases core(s);
      const auto plan = concurrency::Acquire(core.leases, q, LeaseOf(lease), cost, count, now);
      if (plan.outcome.effect != Effect::kNone) {
        concurrency::Commit(core.leases, q, plan.change, now);
        s.leases = core.All();
      }
      return plan.outcome;
    }
  }
  return {};
}

Outcome DebitStored(Stored& s, const Quota& q, std::int64_t units, Time now) {
  switch (s.algorithm) {
    case Algorithm::kGcra: return Keep(s, gcra::Debit(Arrival(s.hash), q, units, now));
    case Algorithm::kFixedWindow: return Keep(s, fixed_window::Debit(Fixed(s.hash), q, units, now));
    case Algorithm::kSlidingWindow:
      return Keep(s, sliding_window::Debit(Sliding(s.hash), q, units, now));
    case Algorithm::kSlidingLog: {
      CoreLog core(s);
      const auto plan = sliding_log::Debit(core.log, q, units, now);
      sliding_log::Commit(core.log, q, plan.change);
      s.log = core.Entries();
      return plan.outcome;
    }
    default: return Keep(s, token_bucket::Debit(Bucket(s.hash), q, units, now));
  }
}

Outcome RefundStored(Stored& s, const Quota& q, std::int64_t units, Time charged_at, Time now) {
  switch (s.algorithm) {
    case Algorithm::kGcra: return Keep(s, gcra::Refund(Arrival(s.hash), q, units, charged_at, now));
    case Algorithm::kFixedWindow:
      return Keep(s, fixed_window::Refund(Fixed(s.hash), q, units, charged_at, now));
    case Algorithm::kSlidingWindow:
      return Keep(s, sliding_window::Refund(Sliding(s.hash), q, units, charged_at, now));
    case Algorithm::kSlidingLog: {
      CoreLog core(s);
      const Outcome outcome = sliding_log::Refund(core.log, q, units, charged_at, now);
      if (outcome.effect != Effect::kNone) s.log = core.Entries();
      return outcome;
    }
    default: return Keep(s, token_bucket::Refund(Bucket(s.hash), q, units, charged_at, now));
  }
}

/// Runs a renew or a release.
Outcome LeaseStored(Stored& s, const Quota& q, std::int64_t op, const std::string& lease,
                    Time now) {
  CoreLeases core(s);
  Outcome outcome;
  if (op == kRenew) {
    const auto plan = concurrency::Renew(core.leases, q, LeaseOf(lease), now);
    outcome = plan.outcome;
    if (outcome.effect != Effect::kNone) concurrency::Commit(core.leases, q, plan.change, now);
  } else {
    outcome = concurrency::Release(core.leases, q, LeaseOf(lease), now);
  }
  if (outcome.effect != Effect::kNone) s.leases = core.All();
  return outcome;
}

void MakeFresh(Stored& s, const Quota& q, Time now) {
  s.expires = 0;
  s.log.clear();
  s.leases.clear();
  switch (s.algorithm) {
    case Algorithm::kTokenBucket: s.hash = ToHash(token_bucket::Fresh(q, now)); break;
    case Algorithm::kGcra: s.hash = ToHash(gcra::Fresh(q, now)); break;
    case Algorithm::kFixedWindow: s.hash = ToHash(fixed_window::Fresh(q, now)); break;
    case Algorithm::kSlidingWindow: s.hash = ToHash(sliding_window::Fresh(q, now)); break;
    default: break;
  }
}

}  // namespace

concurrency::LeaseId LeaseOf(const std::string& text) {
  return {1, std::hash<std::string>{}(text)};
}

Outcome LookAt(const Stored& stored, const Quota& quota, Time now) {
  Stored copy = stored;
  return StepStored(copy, quota, 1, 0, "", now);
}

Model::Open& Model::Touch(const std::string& key, const Quota& quota) {
  const auto found = open_.find(key);
  if (found != open_.end()) return found->second;
  Open& open = open_[key];
  open.state = keys[key];
  open.state.algorithm = quota.algorithm();
  open.existed = open.state.exists;
  if (open.state.corrupt) ++healed_;
  if (open.state.corrupt || !open.state.exists) MakeFresh(open.state, quota, now_);
  open.before = open.state.hash;
  return open;
}

void Model::RecordOutcome(Open& key, const Quota& quota, const Outcome& outcome) {
  if (outcome.effect != Effect::kNone) key.written = true;
  if (outcome.effect == Effect::kRepaired) ++repaired_;
  key.recovered = now_ + LookAt(key.state, quota, now_).reset_after;
  key.stepped_by = &quota;
  last = outcome;
}

Outcome Model::Step(Open& key, const Quota& quota, const Item& item, std::int64_t count) {
  const Outcome outcome = StepStored(key.state, quota, item.cost, count, item.lease, now_);
  RecordOutcome(key, quota, outcome);
  return outcome;
}

std::int64_t Model::Admits(const Open& key, const Quota& quota, const Item& item,
                           std::int64_t count) const {
  Stored copy = key.state;
  return StepStored(copy, quota, item.cost, count, item.lease, now_).admitted;
}

std::int64_t Model::Refund(Open& key, const Quota& quota, const Item& item, const Entry& entry,
                           const std::string& id) {
  if (used_ids.contains(id)) return 0;
  if (LookAt(key.state, quota, now_).reset_after == Micros{0}) {
    key.recovered = now_;
    key.stepped_by = &quota;
    return 0;
  }
  const Time charged_at = entry.since == 1   ? now_ - Micros{entry.value}
                          : entry.since == 2 ? At(entry.value)
                                             : now_;
  const Outcome outcome = RefundStored(key.state, quota, item.cost, charged_at, now_);
  RecordOutcome(key, quota, outcome);
  if (outcome.admitted > 0) used_ids.insert(id);
  return outcome.admitted;
}

std::int64_t Model::Reset(Open& key, const Quota& quota) {
  const bool existed = key.existed || key.written;
  MakeFresh(key.state, quota, now_);
  key.existed = key.written = false;
  key.stepped_by = nullptr;
  return existed ? 1 : 0;
}

Outcome Model::ActAlone(Open& key, const Quota& quota, const Entry& entry, const std::string& id) {
  const Item& item = entry.items.front();
  Outcome outcome;
  switch (entry.op) {
    case kLook: outcome = Step(key, quota, item, 0); break;
    case kDebit:
      outcome = DebitStored(key.state, quota, item.cost, now_);
      RecordOutcome(key, quota, outcome);
      break;
    case kRefund: outcome.admitted = Refund(key, quota, item, entry, id); break;
    case kReset: outcome.admitted = Reset(key, quota); break;
    default:
      outcome = LeaseStored(key.state, quota, entry.op, item.lease, now_);
      RecordOutcome(key, quota, outcome);
      break;
  }
  return outcome;
}

void Model::AppendListOutcome(Open& key, const Quota& quota, const Item& item,
                              std::int64_t admitted, std::int64_t cost) {
  if (!IsList(quota.algorithm())) return;
  const Outcome o = StepStored(key.state, quota, cost, 0, item.lease, now_);
  RecordOutcome(key, quota, o);
  answers_.insert(answers_.end(), {admitted, o.remaining, o.retry_after.count(),
                                   o.more_after.count(), o.reset_after.count(), o.never ? 1 : 0});
}

bool Model::Holds(const Open& key, const Item& item) const {
  if (key.state.algorithm != Algorithm::kConcurrency) return false;
  return std::ranges::any_of(key.state.leases, [&](const concurrency::Lease& lease) {
    return lease.id == LeaseOf(item.lease) && lease.expiry > now_;
  });
}

std::vector<std::int64_t> Model::Apply(const Batch& batch, Time now) {
  now_ = now;
  repaired_ = healed_ = 0;
  open_.clear();
  answers_.clear();
  const auto key_of = [&](const Item& item) -> Open& {
    return Touch(batch.keys[item.key], batch.quotas[item.quota]);
  };
  for (const Entry& entry : batch.entries) {
    if (entry.op != kApply) {
      const Item& item = entry.items.front();
      const Quota& quota = batch.quotas[item.quota];
      Open& key = key_of(item);
      const Outcome outcome = ActAlone(key, quota, entry, batch.keys[entry.id]);
      answers_.push_back(outcome.admitted);
      AppendListOutcome(key, quota, item, outcome.admitted, entry.op == kLook ? item.cost : 1);
      continue;
    }
    std::int64_t admitted = entry.count;
    for (const Item& item : entry.items) {
      const Open& key = key_of(item);
      if (item.mode != 0) continue;
      admitted = std::min(admitted, Admits(key, batch.quotas[item.quota], item, entry.count));
    }
    answers_.push_back(admitted);
    for (const Item& item : entry.items) {
      const Quota& quota = batch.quotas[item.quota];
      const bool held = Holds(key_of(item), item);
      const Outcome outcome = Step(key_of(item), quota, item, admitted);
      AppendListOutcome(key_of(item), quota, item, outcome.admitted, item.cost);
      if (held && outcome.admitted > 0) answers_.back() += 2;
    }
  }
  std::vector<std::int64_t> reply = {Tick(now), repaired_, healed_, 0};
  for (const std::string& key : batch.keys) {
    const auto open = open_.find(key);
    if (open == open_.end() || IsList(open->second.state.algorithm)) continue;
    reply.insert(reply.end(), open->second.before.begin(), open->second.before.end());
  }
  reply.insert(reply.end(), answers_.begin(), answers_.end());
  Finish();
  return reply;
}

void Model::Finish() {
  recovered.clear();
  renewed.clear();
  for (auto& [name, open] : open_) {
    Stored& stored = keys[name];
    const bool healed = stored.corrupt && !open.written;
    stored = open.state;
    stored.corrupt = false;
    stored.exists = open.written || (open.existed && !healed);
    if (open.state.algorithm == Algorithm::kSlidingLog && stored.log.empty()) stored.exists = false;
    if (open.state.algorithm == Algorithm::kConcurrency && stored.leases.empty()) {
      stored.exists = false;
    }
    if (!stored.exists || open.stepped_by == nullptr) continue;
    recovered[name] = open.recovered;
    const std::int64_t left = Tick(open.recovered) - Tick(now_);
    // An `expires` beyond any TTL that Tidegate sets is not trusted.
    const std::int64_t far = 4 * (open.stepped_by->recovery().count() + left) + 10'000'000;
    const bool believed = IsList(open.state.algorithm) || stored.expires - Tick(now_) <= far;
    if (stored.expires >= Tick(open.recovered) && believed) continue;
    const Micros most = std::max(open.stepped_by->recovery(), open.recovered - now_);
    const std::int64_t ms = CeilDiv(2 * most.count(), 1000) + 1000;
    stored.expires = std::min(Tick(now_) + ms * 1000, std::int64_t{1} << 53);
    renewed[name] = ms;
  }
}

}  // namespace tidegate::redis_test

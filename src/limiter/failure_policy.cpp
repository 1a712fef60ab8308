// SPDX-License-Identifier: Apache-2.0
#include "limiter/failure_policy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/quota_scale.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMostShares = 4096;

Decision Closed(const Charge& charge) noexcept {
  return {.allowed = false,
          .decided_by = DecidedBy::kClosed,
          .limit = charge.quota->capacity(),
          .retry_after = FailurePolicy::kClosedFor,
          .rule = charge.rule};
}

Decision Open(const Charge& charge) noexcept {
  return {.allowed = true,
          .decided_by = DecidedBy::kOpen,
          .limit = charge.quota->capacity(),
          .rule = charge.rule};
}

bool Refuses(const Charge& charge) noexcept {
  return charge.on_failure == OnFailure::kClosed && charge.mode == Mode::kEnforce;
}

}  // namespace

Quota ShareOf(const Quota& quota, std::int64_t nodes) noexcept {
  if (nodes <= 1) return quota;
  nodes = std::min<std::int64_t>(nodes, 10'000);  // So that period * nodes does not overflow.
  QuotaSpec spec{.algorithm = quota.algorithm(),
                 .limit = quota.limit(),
                 .period = quota.period(),
                 .ceiling = quota.limit()};
  if (quota.algorithm() != Algorithm::kConcurrency) spec.max_debt = quota.max_debt() / nodes;
  if (IsBucket(quota.algorithm())) {
    // The share admits the limit in n times the period, so the limit need not be divisible by n.
    spec.burst = std::max<std::int64_t>(1, quota.capacity() / nodes);
    spec.period = quota.period() * nodes;
    if (auto share = Quota::Make(spec)) return *share;
    spec.period = quota.period();
  }
  spec.limit = std::max<std::int64_t>(1, quota.limit() / nodes);
  auto share = Quota::Make(spec);
  if (share) return *share;
  // That share cannot be counted exactly: the smallest quota admits less, never more.
  spec.limit = 1;
  spec.burst = IsBucket(quota.algorithm()) ? 1 : 0;
  share = Quota::Make(spec);
  return share ? *share : quota;
}

std::size_t FailurePolicy::Hash::operator()(const Quota& quota) const noexcept {
  auto hash = static_cast<std::size_t>(quota.limit());
  for (const std::int64_t part :
       {quota.period().count(), quota.capacity(), static_cast<std::int64_t>(quota.algorithm())}) {
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

Charge FailurePolicy::Share(const Charge& charge) {
  Charge share = charge;
  if (sharing_ > 1) {
    const auto [at, added] = shares_.try_emplace(*charge.quota, *charge.quota);
    if (added) at->second = ShareOf(*charge.quota, sharing_);
    share.quota = &at->second;
  }
  return share;
}

void FailurePolicy::Answer(Call& call) {
  call.error.reset();
  call.applied = Applied::kNo;
  call.allowed = true;
  if (const std::int64_t nodes = nodes_(); nodes != sharing_ || shares_.size() >= kMostShares) {
    shares_.clear();
    sharing_ = nodes;
  }
  const bool refused = std::ranges::any_of(call.charges, Refuses);
  const bool together = call.kind == Call::Kind::kApply && !refused;
  if (together) Apply(call);
  for (std::size_t i = 0; i < call.charges.size() && !call.error; ++i) {
    const Charge& charge = call.charges[i];
    switch (charge.on_failure) {
      case OnFailure::kOpen:
        call.decisions[i] = Open(charge);
        // The lease may still be held, so the caller may go on.
        if (call.kind == Call::Kind::kRenew && !refused) call.applied = Applied::kYes;
        break;
      case OnFailure::kClosed: call.decisions[i] = Closed(charge); break;
      case OnFailure::kLocal:
        if (!together) CarryOut(call, i, refused ? Call::Kind::kPeek : call.kind);
        break;
    }
    if (charge.mode == Mode::kEnforce && !call.decisions[i].allowed) call.allowed = false;
  }
}

void FailurePolicy::Apply(Call& call) {
  std::array<Charge, kMaxCharges> charges;
  std::array<Decision, kMaxCharges> decisions;
  std::size_t count = 0;
  for (const Charge& charge : call.charges) {
    if (charge.on_failure == OnFailure::kLocal) charges[count++] = Share(charge);
  }
  if (count == 0) return;
  const auto admitted =
      local_.Apply(std::span(charges).first(count), 1, std::span(decisions).first(count));
  if (!admitted) {
    call.error = admitted.error();
    return;
  }
  call.allowed = *admitted == 1;
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (call.charges[i].on_failure != OnFailure::kLocal) continue;
    call.decisions[i] = decisions[next++];
    call.decisions[i].decided_by = DecidedBy::kLocal;
  }
}

void FailurePolicy::CarryOut(Call& call, std::size_t charge, Call::Kind kind) {
  const Charge share = Share(call.charges[charge]);
  Call local;
  local.kind = kind;
  local.charges = {&share, 1};
  local.decisions = call.decisions.subspan(charge, 1);
  local.refund = call.refund;
  local.finished = [](Call&) noexcept {};
  local_.Start(local);
  if (kind == Call::Kind::kRenew && !local.error && local.applied == Applied::kNo) {
    // The lease was acquired while Redis answered, so this node has to acquire it now.
    const auto taken = local_.Apply(share);
    if (taken && taken->allowed) local_.Start(local);
  }
  call.error = std::move(local.error);
  if (local.applied == Applied::kYes) call.applied = Applied::kYes;
  call.decisions[charge].decided_by = DecidedBy::kLocal;
}

}  // namespace tidegate

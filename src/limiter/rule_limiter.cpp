// SPDX-License-Identifier: Apache-2.0
#include "tidegate/rule_limiter.hpp"

#include <utility>

#include "store/store.hpp"

namespace tidegate {
namespace {

Charge ChargeOf(const RuleCharge& charge) noexcept {
  return {.rule = charge.rule,
          .identity = charge.identity,
          .quota = charge.quota,
          .cost = charge.cost,
          .mode = charge.mode,
          .lease = charge.lease};
}

}  // namespace

RuleLimiter::RuleLimiter(const MemoryOptions& options) : store_(NewMemoryStore(options)) {}
RuleLimiter::RuleLimiter(RuleLimiter&&) noexcept = default;
RuleLimiter& RuleLimiter::operator=(RuleLimiter&&) noexcept = default;
RuleLimiter::~RuleLimiter() = default;

Result<Decision> RuleLimiter::Decide(std::string_view rule, std::string_view identity,
                                     const Quota& quota, std::int64_t cost) {
  return store_->Apply(Charge{.rule = rule, .identity = identity, .quota = &quota, .cost = cost});
}

Result<Decision> RuleLimiter::Decide(const RuleCharge& charge) {
  return store_->Apply(ChargeOf(charge));
}

Result<Verdict> RuleLimiter::Decide(std::span<const RuleCharge> charges) {
  std::vector<Charge> all;
  all.reserve(charges.size());
  for (const RuleCharge& charge : charges) all.push_back(ChargeOf(charge));
  Verdict verdict;
  verdict.decisions.resize(charges.size());
  const auto admitted = store_->Apply(all, 1, verdict.decisions);
  if (!admitted) return admitted.error();
  verdict.allowed = *admitted == 1;
  verdict.governing = Governing(all, verdict.decisions);
  return verdict;
}

Result<Decision> RuleLimiter::Peek(const RuleCharge& charge) {
  return store_->Peek(ChargeOf(charge));
}

Result<Decision> RuleLimiter::Debit(const RuleCharge& charge) {
  return store_->Debit(ChargeOf(charge));
}

Result<Applied> RuleLimiter::Refund(const RuleCharge& charge, const RefundRequest& request) {
  return store_->Refund(ChargeOf(charge), request);
}

Result<Applied> RuleLimiter::Reset(const RuleCharge& charge) {
  return store_->Reset(ChargeOf(charge));
}

Result<Applied> RuleLimiter::Renew(const RuleCharge& charge) {
  return store_->Renew(ChargeOf(charge));
}

Result<Applied> RuleLimiter::Release(const RuleCharge& charge) {
  return store_->Release(ChargeOf(charge));
}

Result<Inspection> RuleLimiter::Inspect(const RuleCharge& charge) {
  return store_->Inspect(ChargeOf(charge));
}

}  // namespace tidegate

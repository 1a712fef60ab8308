// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "core/charge.hpp"
#include "tidegate/rule_limiter.hpp"

namespace tidegate {

/// The library as an embedding program uses it, with charges as a server resolves them.
class Library {
 public:
  explicit Library(const Clock& clock) : limiter_({.clock = &clock}) {}

  Result<Verdict> Decide(std::span<const Charge> charges) {
    std::vector<RuleCharge> all;
    for (const Charge& charge : charges) all.push_back(Of(charge));
    return limiter_.Decide(all);
  }
  Decision Peek(const Charge& charge) { return limiter_.Peek(Of(charge)).value(); }
  Decision Debit(const Charge& charge) { return limiter_.Debit(Of(charge)).value(); }
  Applied Refund(const Charge& charge, const RefundRequest& request) {
    return limiter_.Refund(Of(charge), request).value();
  }
  Applied Renew(const Charge& charge) { return limiter_.Renew(Of(charge)).value(); }
  Applied Release(const Charge& charge) { return limiter_.Release(Of(charge)).value(); }

 private:
  static RuleCharge Of(const Charge& charge) {
    return {.rule = charge.rule,
            .identity = charge.identity,
            .quota = charge.quota,
            .cost = charge.cost,
            .mode = charge.mode,
            .lease = charge.lease};
  }

  RuleLimiter limiter_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tidegate/error.hpp"
#include "tidegate/limiter.hpp"
#include "tidegate/rule_charge.hpp"

namespace tidegate {

/// Applies many rules in one store. The caller passes the quota with each call. Use it for requests
/// that must fit several quotas at once, for quotas that differ from call to call, and for refunds
/// and inspection. Most programs want Limiter. Thread-safe.
///
///     tidegate::RuleLimiter limiter;
///     const std::array<RuleCharge, 2> charges{
///         {{"user", user, &per_user}, {"org", org, &per_org}}};
///     const auto verdict = limiter.Decide(charges);
///     if (!verdict || !verdict->allowed) return TooManyRequests();
///
/// A call returns an Error only for invalid arguments: a cost outside 1 to 2^31-1, an empty
/// identity, a missing lease id. Check for an Error if arguments come from outside the program.
class RuleLimiter {
 public:
  explicit RuleLimiter(const MemoryOptions& options = {});
  RuleLimiter(RuleLimiter&&) noexcept;
  RuleLimiter& operator=(RuleLimiter&&) noexcept;
  ~RuleLimiter();

  /// Decides whether one request of `identity` may pass under `rule`. Charges the request if it
  /// may.
  [[nodiscard]] Result<Decision> Decide(std::string_view rule, std::string_view identity,
                                        const Quota& quota, std::int64_t cost = 1);
  /// Decides on a charge with all its fields. A `concurrency` charge takes a lease until the lease
  /// is released or one period has passed without a renewal.
  [[nodiscard]] Result<Decision> Decide(const RuleCharge& charge);
  /// Applies several charges, all or nothing; shadow charges never deny the request.
  [[nodiscard]] Result<Verdict> Decide(std::span<const RuleCharge> charges);

  /// Returns the decision that Decide would make, without charging.
  [[nodiscard]] Result<Decision> Peek(const RuleCharge& charge);
  /// Charges a cost that is known only afterwards, even if fewer units are left.
  [[nodiscard]] Result<Decision> Debit(const RuleCharge& charge);
  /// Gives the cost back, up to the capacity. Returns kNo if the id was applied before, the
  /// charge's window has passed, or the key has no state of its own.
  [[nodiscard]] Result<Applied> Refund(const RuleCharge& charge, const RefundRequest& request);
  /// Forgets the key: its next request finds a full quota.
  [[nodiscard]] Result<Applied> Reset(const RuleCharge& charge);

  /// Renews the charge's lease for at least one more period; returns kNo if the lease is gone.
  [[nodiscard]] Result<Applied> Renew(const RuleCharge& charge);
  /// Ends the charge's lease; returns kNo if the lease was gone.
  [[nodiscard]] Result<Applied> Release(const RuleCharge& charge);

  [[nodiscard]] Result<Inspection> Inspect(const RuleCharge& charge);

 private:
  std::unique_ptr<Store> store_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tidegate/charge.hpp"
#include "tidegate/clock.hpp"
#include "tidegate/decision.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The answer to a request with several charges.
struct Verdict {
  bool allowed = false;
  /// The one that the caller should hear about: of those that deny, the one with
  /// the longest retry_after; else the one with the smallest share left. Where the store
  /// could not answer, one that is closed comes before all others, one that is open last.
  Decision governing;
  std::vector<Decision> decisions;  ///< One per charge, in order.
};

/// What an embedding program calls. Thread-safe.
///
/// Most people want `Decide(rule, identity, quota)`:
///
///     tidegate::Limiter limiter;
///     auto quota = tidegate::Quota::Make({.limit = 100, .period = 1s, .burst = 200}).value();
///     const auto decision = limiter.Decide("login", user, quota);
///     if (!decision || !decision->allowed) return TooManyRequests();
///
/// A call returns an Error only for what makes no sense: a cost outside 1 to 2^31-1,
/// an empty identity, a missing lease id. Check it where they come from outside.
/// Decisions point at the rule's name that was given; keep it as long as them.
class Limiter {
 public:
  /// With a memory store of its own.
  explicit Limiter(const MemoryOptions& options = {});
  /// REQUIRES: a store.
  explicit Limiter(std::unique_ptr<Store> store);

  /// May one request of `identity` pass under `rule`? Charges it if so.
  [[nodiscard]] Result<Decision> Decide(std::string_view rule, std::string_view identity,
                                        const Quota& quota, std::int64_t cost = 1) {
    return store_->Apply(Charge{rule, identity, &quota, cost});
  }

  /// Several charges, all or nothing; shadow charges only watch.
  [[nodiscard]] Result<Verdict> Decide(std::span<const Charge> charges);

  /// Takes a place under a `concurrency` quota until it is released, or one
  /// period has passed without a renewal.
  [[nodiscard]] Result<Decision> Acquire(std::string_view rule, std::string_view identity,
                                         const Quota& quota, std::string_view lease,
                                         std::int64_t cost = 1) {
    return store_->Apply(Charge{rule, identity, &quota, cost, Mode::kEnforce, lease});
  }

  /// Keeps the place for at least one period more; kNothing if it is lost already.
  [[nodiscard]] Result<Done> Renew(std::string_view rule, std::string_view identity,
                                   const Quota& quota, std::string_view lease) {
    return store_->Renew(Charge{rule, identity, &quota, 1, Mode::kEnforce, lease});
  }
  [[nodiscard]] Result<Done> Release(std::string_view rule, std::string_view identity,
                                     const Quota& quota, std::string_view lease) {
    return store_->Release(Charge{rule, identity, &quota, 1, Mode::kEnforce, lease});
  }

  /// What Decide would answer, without charging.
  [[nodiscard]] Result<Decision> Peek(std::string_view rule, std::string_view identity,
                                      const Quota& quota, std::int64_t cost = 1) {
    return store_->Peek(Charge{rule, identity, &quota, cost});
  }
  /// Charges what is known only afterwards, whether it is there or not.
  [[nodiscard]] Result<Decision> Debit(std::string_view rule, std::string_view identity,
                                       const Quota& quota, std::int64_t cost) {
    return store_->Debit(Charge{rule, identity, &quota, cost});
  }

  /// Everything else: counts, refunds, resets, inspections.
  [[nodiscard]] Store& store() noexcept { return *store_; }

 private:
  std::unique_ptr<Store> store_;
};

/// Which of `decisions` governs; shadow charges do not count unless all are.
/// REQUIRES: as many charges as decisions, at least one.
[[nodiscard]] const Decision& Governing(std::span<const Charge> charges,
                                        std::span<const Decision> decisions) noexcept;

}  // namespace tidegate

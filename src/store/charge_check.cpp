// SPDX-License-Identifier: Apache-2.0
#include "store/charge_check.hpp"

#include <string>

namespace tidegate {
namespace {

Error Bad(std::string why) { return {ErrorCode::kBadCharge, std::move(why)}; }

Error Unsupported(std::string why) { return {ErrorCode::kUnsupported, std::move(why)}; }

std::optional<Error> CheckOperation(const Charge& charge, Call::Kind operation) {
  const bool leases = charge.quota->algorithm() == Algorithm::kConcurrency;
  switch (operation) {
    case Call::Kind::kDebit:
      if (leases) return Unsupported("a concurrency rule has no debits: acquire a lease instead");
      break;
    case Call::Kind::kRefund:
      if (leases)
        return Unsupported("a concurrency rule has no refunds: release the lease instead");
      break;
    case Call::Kind::kRenew:
    case Call::Kind::kRelease:
      if (!leases) {
        return Unsupported("only concurrency has leases, and rule '" + std::string(charge.rule) +
                           "' counts by " + std::string(Name(charge.quota->algorithm())));
      }
      break;
    default: break;
  }
  const bool names_lease = operation != Call::Kind::kPeek && operation != Call::Kind::kReset;
  if (leases && names_lease && charge.lease.empty()) {
    return Bad("a concurrency charge needs a lease id, so that it can be renewed and released");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> CheckCharge(const Charge& charge, Call::Kind operation) {
  if (charge.quota == nullptr) return Bad("a charge needs a quota");
  if (charge.rule.empty()) return Bad("a charge needs a rule: keys without room count per rule");
  if (charge.identity.empty()) {
    return Bad("a charge of rule '" + std::string(charge.rule) +
               "' has an empty identity: all such callers would share one quota");
  }
  if (charge.cost < 1 || charge.cost > kMaxCost) {
    return Bad("the cost is " + std::to_string(charge.cost) +
               ", and a cost must be between 1 and 2147483647");
  }
  if (operation == Call::Kind::kApply && charge.quota->algorithm() != Algorithm::kConcurrency) {
    return std::nullopt;
  }
  return CheckOperation(charge, operation);
}

std::optional<Error> CheckRequest(std::span<const Charge> charges, std::int64_t count,
                                  std::span<const Decision> decisions) {
  if (charges.empty()) return Bad("a request needs at least one charge");
  if (charges.size() > kMaxCharges) {
    return Bad("a request of " + std::to_string(charges.size()) +
               " charges is too large: the most is " + std::to_string(kMaxCharges));
  }
  if (decisions.size() != charges.size()) return Bad("there must be one decision per charge");
  if (count < 1 || count > kMaxCount) {
    return Bad("the count is " + std::to_string(count) +
               ", and a count must be between 1 and 2147483647");
  }
  for (const Charge& charge : charges) {
    if (auto bad = CheckCharge(charge)) return bad;
  }
  return std::nullopt;
}

Error RepeatedKey(const Charge& charge) {
  return Bad("two charges of one request name the same key of rule '" + std::string(charge.rule) +
             "'; give each a rule of its own");
}

}  // namespace tidegate

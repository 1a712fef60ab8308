// SPDX-License-Identifier: Apache-2.0
#include "limiter/request_key.hpp"

#include <array>
#include <string>

namespace tidegate {
namespace {

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ typedef unsigned __int128 Wide;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::optional<Error> Identify(const Fingerprinter& fingerprinter, Call& call) {
  std::array<Fingerprint, kMaxCharges> keys;
  std::uint64_t low = 0;
  std::uint64_t high = call.charges.size();
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    const Quota& quota = *charge.quota;
    keys[i] = fingerprinter.Key(quota.algorithm(), charge.rule, charge.identity);
    for (std::size_t j = 0; j < i; ++j) {
      if (keys[j] == keys[i]) {
        return Error{ErrorCode::kBadCharge,
                     "two charges of one request name the same key of rule '" +
                         std::string(charge.rule) + "'; give each a rule of its own"};
      }
    }
    // Under another slot tag it is another key in Redis, and therefore another request.
    const Fingerprint key = fingerprinter.WithSlotTag(keys[i], charge);
    // The fingerprints are keyed by a secret: nobody outside can find two requests that meet.
    const auto cost =
        static_cast<std::uint64_t>(charge.cost) << 1 | (charge.mode == Mode::kShadow ? 1u : 0u);
    const std::uint64_t shape = Mix(static_cast<std::uint64_t>(quota.limit()),
                                    static_cast<std::uint64_t>(quota.period().count())) +
                                static_cast<std::uint64_t>(quota.capacity());
    low = Mix(low ^ key.low, cost ^ shape);
    high = Mix(high + key.high, key.low ^ Mix(shape, cost));
    if (!charge.lease.empty() && quota.algorithm() == Algorithm::kConcurrency) {
      const Fingerprint lease = fingerprinter.Id(key, charge.lease);
      low = Mix(low, lease.low);
      high = Mix(high, lease.high);
    }
  }
  call.record.request = {low, high};
  return std::nullopt;
}

}  // namespace tidegate

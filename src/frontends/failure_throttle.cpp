// SPDX-License-Identifier: Apache-2.0
#include "frontends/failure_throttle.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "rules/hash.hpp"

namespace tidegate {
namespace {

constexpr int kNetworkBits = 64;

}  // namespace

FailureThrottle::FailureThrottle(std::uint64_t seed)
    : seed_(seed), entries_(std::make_unique<std::array<Entry, kEntries>>()) {}

std::optional<FailureThrottle::Clock::duration> FailureThrottle::Add(
    const Address& address, Clock::time_point now) noexcept {
  const Address counted = address.MaskedV6(kNetworkBits);
  const auto& bytes = counted.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t set = Hash(text, seed_) % (kEntries / kWays);
  const std::lock_guard lock(mutex_);
  const std::span<Entry> ways(entries_->data() + set * kWays, kWays);
  auto found = std::ranges::find(ways, counted, &Entry::address);
  if (found == ways.end()) {
    found = std::ranges::min_element(ways, {}, &Entry::clear_at);
    *found = {counted, now};
  }
  const Clock::time_point clear_at = std::max(found->clear_at, now);
  const Clock::duration over = clear_at + kInterval - (now + kBurst * kInterval);
  if (over > Clock::duration::zero()) return over;
  found->clear_at = clear_at + kInterval;
  return std::nullopt;
}

}  // namespace tidegate

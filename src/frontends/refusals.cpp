// SPDX-License-Identifier: Apache-2.0
#include "frontends/refusals.hpp"

#include "rules/address.hpp"
#include "rules/printable.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

std::string_view Refusals::Name(Why why) noexcept {
  return why == Why::kUnknown ? "unknown" : "rights";
}

void Refusals::Note(const net::Peer& peer, std::string_view what, Why why,
                    Clock::time_point now) noexcept {
  counts_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  Clock::rep next = next_.load(std::memory_order_relaxed);
  const Clock::rep at = now.time_since_epoch().count();
  const Clock::rep then = (now + kEvery).time_since_epoch().count();
  // If several threads get here at once, only one of them logs.
  if (at < next || !next_.compare_exchange_strong(next, then, std::memory_order_relaxed)) {
    untold_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t before = untold_.exchange(0, std::memory_order_relaxed);
  Log::Warning(why == Why::kUnknown ? "request rejected: unknown token"
                                    : "request rejected: insufficient rights",
               {{"door", door_},
                {"from", Address(peer.bytes).Text()},
                {"request", Printable(what)},
                {"suppressed", std::to_string(before)}});
}

}  // namespace tidegate

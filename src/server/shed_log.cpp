// SPDX-License-Identifier: Apache-2.0
#include "server/shed_log.hpp"

#include "rules/address.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

constexpr std::chrono::minutes kBetweenLines{1};

}  // namespace

void ShedLog::Note(net::Shed why, const net::Peer* peer, Clock::time_point now) {
  State& state = states_[static_cast<std::size_t>(why)];
  const std::uint64_t count = state.unlogged.fetch_add(1, std::memory_order_relaxed) + 1;
  Clock::rep next = state.next.load(std::memory_order_relaxed);
  const Clock::rep then = (now + kBetweenLines).time_since_epoch().count();
  // If several threads get here at once, only one of them logs.
  if (now.time_since_epoch().count() < next ||
      !state.next.compare_exchange_strong(next, then, std::memory_order_relaxed)) {
    return;
  }
  state.unlogged.fetch_sub(count, std::memory_order_relaxed);
  const std::string connections = std::to_string(count);
  switch (why) {
    case net::Shed::kConnections:
      Log::Warning("connections rejected: the listener has limits.connections open",
                   {{"listener", listener_},
                    {"limit", std::to_string(limits_.connections)},
                    {"rejected", connections}});
      return;
    case net::Shed::kAddress:
      Log::Warning("connections rejected: one address has limits.connections_per_address open",
                   {{"listener", listener_},
                    {"peer", peer == nullptr ? "unknown" : Address(peer->bytes).Text()},
                    {"limit", std::to_string(limits_.connections_per_address)},
                    {"rejected", connections}});
      return;
    case net::Shed::kDescriptors:
      Log::Warning(
          "connections rejected: the process is running out of file descriptors; raise LimitNOFILE "
          "of systemd or the hard limit of `ulimit -n`, or lower limits.connections",
          {{"listener", listener_},
           {"descriptors", std::to_string(descriptors_.limit)},
           {"reserved", std::to_string(descriptors_.reserved())},
           {"rejected", connections}});
      return;
  }
}

}  // namespace tidegate

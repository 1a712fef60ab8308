// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "net/listener.hpp"
#include "server/descriptor_plan.hpp"

namespace tidegate {

/// Logs that a listener sheds connections, and what to do about it: at most one line a minute for
/// each reason, with the number of connections since the last line. Thread-safe.
class ShedLog {
 public:
  using Clock = std::chrono::steady_clock;

  ShedLog(std::string listener, const DescriptorPlan& descriptors, const Config::Limits& limits)
      : listener_(std::move(listener)), descriptors_(descriptors), limits_(limits) {}

  /// `peer` is nullptr if the connection could not be accepted.
  void Note(net::Shed why, const net::Peer* peer, Clock::time_point now = Clock::now());

 private:
  struct State {
    std::atomic<std::uint64_t> unlogged{0};
    std::atomic<Clock::rep> next{Clock::time_point::min().time_since_epoch().count()};
  };

  const std::string listener_;
  const DescriptorPlan descriptors_;
  const Config::Limits limits_;
  std::array<State, net::kShedReasons> states_;
};

}  // namespace tidegate

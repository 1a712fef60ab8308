// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gateway/routing.hpp"
#include "net/buffers.hpp"
#include "net/reactor.hpp"

namespace tidegate {

/// Counts good and bad results of health checks in a row. No I/O.
class HealthCount {
 public:
  /// Records a result. Returns whether the member is healthy from now on; nothing if that does not
  /// change.
  [[nodiscard]] std::optional<bool> Note(bool good, const UpstreamSpec::Health& health) noexcept;

 private:
  int good_ = 0;
  int bad_ = 0;
};

/// Repeats the DNS lookups and the health checks of upstreams, whether there is traffic or not. One
/// per process, on one reactor; all reactors see the results.
class UpstreamMonitor {
 public:
  UpstreamMonitor(net::Reactor& reactor, net::BufferPool& buffers);
  ~UpstreamMonitor();

  /// Sets the upstreams to monitor. Lookups and checks of upstreams that were set before continue.
  void Use(const Upstreams& upstreams);

 private:
  class Schedule;
  net::Reactor& reactor_;
  net::BufferPool& buffers_;
  std::vector<std::unique_ptr<Schedule>> schedules_;
};

}  // namespace tidegate

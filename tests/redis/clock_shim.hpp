// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "redis/redis_server.hpp"
#include "support/files.hpp"

namespace tidegate::redis_test {

/// Controls the wall clock of a redis-server that was started with `environment()`: the system time
/// plus an offset. A new offset takes effect when the server next reads its clock.
class ClockShim {
 public:
  ClockShim();
  ~ClockShim();
  ClockShim(const ClockShim&) = delete;
  ClockShim& operator=(const ClockShim&) = delete;

  /// Returns the environment variables for RedisServer::Options.
  [[nodiscard]] std::vector<std::string> environment() const;
  void Set(std::chrono::microseconds offset);
  void Step(std::chrono::microseconds by) { Set(offset() + by); }
  [[nodiscard]] std::chrono::microseconds offset() const;

 private:
  test::TemporaryFolder folder_;
  std::string file_;
  std::int64_t* mapped_ = nullptr;
};

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis/redis_server.hpp"
#include "redis_baseline.hpp"
#include "redis_drive.hpp"

namespace tidegate::bench {

/// Compares the RedisStore with a baseline. Both are called in turns with the same keys of one
/// Redis. The result is the CPU time of Redis per decision.
class Contest {
 public:
  struct Load {
    Draws draws;
    std::uint32_t keys;  ///< Number of different keys. All of them exist before the measurement.
    Quota quota;
    std::size_t concurrent = 256;  ///< Concurrent requests of the RedisStore; the baseline has 256.
    Baseline::Way baseline = Baseline::Way::kScript;
    double warm_seconds = 0.2;
  };
  struct Rounds {
    int count;
    double seconds;  ///< Duration of each round of each side.
  };
  struct Side {
    std::vector<double> micros;  ///< CPU time of Redis per decision in microseconds, one value for
                                 ///< each round.
    std::uint64_t decisions = 0;
    std::uint64_t allowed = 0;
    double seconds = 0;
    [[nodiscard]] double per_second() const { return static_cast<double>(decisions) / seconds; }
    [[nodiscard]] double denied_share() const {
      return 1 - static_cast<double>(allowed) / static_cast<double>(decisions);
    }
  };
  struct Result {
    Side ours;
    Side baseline;
    double ratio = 0;  ///< Median of the ratios of the rounds: both sides of a ratio are measured
                       ///< within the same second.
    double calls_per_batch = 0;
    double keys_per_batch = 0;
  };

  /// REQUIRES: all arguments outlive this object.
  Contest(redis_test::RedisServer& server, RedisStoreHost& host,
          const std::vector<std::string>& identities)
      : server_(server), host_(host), identities_(identities) {}

  [[nodiscard]] Result Run(const Load& load, const Rounds& rounds);

 private:
  redis_test::RedisServer& server_;
  RedisStoreHost& host_;
  const std::vector<std::string>& identities_;
};

[[nodiscard]] double Median(std::vector<double> values);

}  // namespace tidegate::bench

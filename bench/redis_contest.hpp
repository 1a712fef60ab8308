// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis/redis_server.hpp"
#include "redis_baseline.hpp"
#include "redis_drive.hpp"

namespace tidegate::bench {

/// The RedisStore and a baseline, called with the same keys of one Redis in turns; what counts is
/// how much of that Redis's CPU time a decision takes.
class Contest {
 public:
  struct Load {
    Draws draws;
    std::uint32_t keys;  ///< That may be drawn; all are there before anything is measured.
    Quota quota;
    std::size_t concurrent = 256;  ///< Of the RedisStore's; the baseline has 256.
    Baseline::Way baseline = Baseline::Way::kScript;
    double warm_seconds = 0.2;
  };
  struct Rounds {
    int count;
    double seconds;  ///< Of each.
  };
  struct Side {
    std::vector<double> micros;  ///< Of Redis's CPU time per decision, one per round.
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
    double ratio = 0;  ///< The median of the rounds': both were measured within the same second.
    double calls_per_batch = 0;
    double keys_per_batch = 0;
  };

  /// All outlive this.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "child.hpp"
#include "http_pace.hpp"
#include "redis/redis_server.hpp"
#include "redis_draws.hpp"
#include "support/files.hpp"

namespace tidegate::bench {

/// Several `tidegate serve` processes that count in one Redis, called over HTTP.
class Fleet {
 public:
  /// Starts one process with one thread on each of `cores`. `limit`: limit of the rule `per-key`,
  /// in the notation of the configuration.
  Fleet(const std::string& binary, const redis_test::RedisServer& redis,
        const std::vector<int>& cores, const std::string& limit);

  /// Sends `POST /v1/decide` requests from the calling thread.
  HttpPace::Outcome Ask(const std::vector<std::string>& identities, Draws& draws, double per_second,
                        double seconds);

 private:
  test::TemporaryFolder folder_;
  std::vector<int> ports_;
  std::vector<std::unique_ptr<Child>> servers_;
};

}  // namespace tidegate::bench

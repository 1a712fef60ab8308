// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "redis/redis_cluster.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {

/// Moves slots of a cluster between its masters, one after the other, until it is stopped. Keys
/// move one at a time, and between two keys the slot stays divided between both masters for some
/// milliseconds. Meanwhile no other thread may move slots or cause a failover.
class Resharder {
 public:
  struct Options {
    /// Pause before the first key and after the last key of a slot.
    std::chrono::milliseconds half_way{3};
    /// Pause between two keys; a script that uses both keys is refused with TRYAGAIN meanwhile.
    std::chrono::milliseconds between_keys{3};
    std::chrono::milliseconds pause{2};  ///< Pause between two slots.
  };
  Resharder(RedisCluster& cluster, std::vector<int> slots, Options options);
  Resharder(RedisCluster& cluster, std::vector<int> slots)
      : Resharder(cluster, std::move(slots), Options{}) {}
  ~Resharder() { Stop(); }
  Resharder(const Resharder&) = delete;
  Resharder& operator=(const Resharder&) = delete;

  /// Completes the current move and then stops.
  void Stop();
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] int slots_moved() const noexcept { return slots_moved_; }
  [[nodiscard]] int keys_moved() const noexcept { return keys_moved_; }
  /// Returns whether the cluster gave a slot back to its former owner, with all its keys, because a
  /// gossip message was older than the move. The resharder then stops, and the test cannot judge
  /// what was counted. REQUIRES: Stop() was called.
  [[nodiscard]] bool disputed() const noexcept {
    return problem_.find("not the owner") != std::string::npos;
  }
  /// Returns the first other error of the cluster; empty: none. REQUIRES: Stop() was called.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  void Run(std::vector<int> slots, std::vector<std::size_t> owners);

  RedisCluster& cluster_;
  Options options_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> slots_moved_{0};
  std::atomic<int> keys_moved_{0};
  std::string problem_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test

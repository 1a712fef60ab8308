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

/// Moves slots of a cluster between its masters to and fro, one after the other, until it is
/// stopped. Keys go one at a time, and between two of them the slot stays half here and half there
/// for some milliseconds. No other thread may move slots or fail over meanwhile.
class Resharder {
 public:
  struct Options {
    std::chrono::milliseconds half_way{3};      ///< Before the first key and after the last.
    std::chrono::milliseconds between_keys{3};  ///< Whoever asks for both has to come again.
    std::chrono::milliseconds pause{2};         ///< Between two slots.
  };
  Resharder(RedisCluster& cluster, std::vector<int> slots, Options options);
  Resharder(RedisCluster& cluster, std::vector<int> slots)
      : Resharder(cluster, std::move(slots), Options{}) {}
  ~Resharder() { Stop(); }
  Resharder(const Resharder&) = delete;
  Resharder& operator=(const Resharder&) = delete;

  /// The slot on its way arrives first.
  void Stop();
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] int slots_moved() const noexcept { return slots_moved_; }
  [[nodiscard]] int keys_moved() const noexcept { return keys_moved_; }
  /// A slot went back to its former owner by itself, with whatever it held: gossip that was older
  /// than the move. Then it ends, and nothing can be said of what was counted. After Stop.
  [[nodiscard]] bool disputed() const noexcept {
    return problem_.find("not the owner") != std::string::npos;
  }
  /// What else the cluster refused; empty if nothing. After Stop.
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

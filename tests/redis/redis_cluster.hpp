// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/redis_server.hpp"

namespace tidegate::redis_test {

/// A Redis Cluster of the test's own. The first `masters` nodes begin as masters, with equal shares
/// of the slots in order; node `masters + i` begins as the replica of node i. What it tells is
/// requested from nodes that live. Not thread-safe, but for what takes other connections (Connect).
class RedisCluster {
 public:
  static constexpr int kSlots = 16'384;

  struct Options {
    int masters = 3;
    bool replicas = true;
    int node_timeout_ms = 1000;
    std::vector<std::string> arguments = {};  ///< Added to each command line.
    RedisServer::Wire wire = RedisServer::Wire::kPlain;
  };
  RedisCluster() : RedisCluster(Options{}) {}
  /// Waits until all slots are served everywhere and the replicas are in sync.
  explicit RedisCluster(const Options& options);

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t masters() const noexcept { return masters_; }
  RedisServer& operator[](std::size_t node) { return *nodes_[node]; }
  [[nodiscard]] const std::string& Id(std::size_t node) const { return ids_[node]; }
  /// `redis+cluster://` and all nodes; `user` as in `tidegate:pw@`.
  [[nodiscard]] std::string url(std::string_view user = {}) const;

  [[nodiscard]] int SlotOf(const std::string& key);
  /// Who serves the slot, as the nodes that answer say.
  [[nodiscard]] std::size_t MasterOf(int slot);
  /// Of one that is a master from the start.
  [[nodiscard]] std::size_t ReplicaOf(std::size_t master) const { return master + masters_; }
  /// Whether a living node takes writes to the slot now. Asks none that is stopped.
  [[nodiscard]] bool Serves(int slot);
  /// Every node that runs says cluster_state:ok, knows of `masters` that serve, and its link to a
  /// master is up.
  void AwaitWhole();

  /// As redis-cli does, all keys with one MIGRATE after the other.
  void MoveSlot(int slot, std::size_t from, std::size_t to);

  /// On every node that runs and is not stopped: the first answer that is not `OK`, or `OK`.
  std::string All(const std::vector<std::string>& arguments);
  /// Keys of that pattern on the node.
  [[nodiscard]] std::vector<std::string> Keys(std::size_t node, const std::string& pattern);

  void Stop(std::size_t node);
  void Continue(std::size_t node);
  [[nodiscard]] double CpuSeconds() const;

 private:
  void Meet();
  void Divide(int slots_each);
  [[nodiscard]] bool Whole(std::size_t node);
  [[nodiscard]] bool IsInUse(std::size_t node) const {
    return nodes_[node]->running() && !stopped_[node];
  }

  std::size_t masters_;
  RedisServer::Wire wire_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::string> ids_;
  std::vector<bool> stopped_;
};

}  // namespace tidegate::redis_test

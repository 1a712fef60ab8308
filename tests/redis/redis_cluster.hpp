// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/redis_server.hpp"

namespace tidegate::redis_test {

/// A Redis Cluster that belongs to one test. The first `masters` nodes start as masters, with equal
/// shares of the slots in order; node `masters + i` starts as the replica of node i. All queries go
/// to nodes that are running. Not thread-safe, except for functions that open their own connection
/// (Connect).
class RedisCluster {
 public:
  static constexpr int kSlots = 16'384;

  struct Options {
    int masters = 3;
    bool replicas = true;
    int node_timeout_ms = 1000;
    std::vector<std::string> arguments = {};  ///< Added to the command line of each node.
    RedisServer::Wire wire = RedisServer::Wire::kPlain;
  };
  RedisCluster() : RedisCluster(Options{}) {}
  /// Starts the cluster, and waits until every node serves its slots and the replicas are in sync.
  explicit RedisCluster(const Options& options);

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t masters() const noexcept { return masters_; }
  RedisServer& operator[](std::size_t node) { return *nodes_[node]; }
  [[nodiscard]] const std::string& Id(std::size_t node) const { return ids_[node]; }
  /// Returns `redis+cluster://` (with TLS `rediss+cluster://`) and the addresses of all nodes;
  /// `user` is written as `tidegate:pw@`.
  [[nodiscard]] std::string url(std::string_view user = {}) const;

  [[nodiscard]] int SlotOf(const std::string& key);
  /// Returns the node that serves the slot, according to the nodes that are in use.
  [[nodiscard]] std::size_t MasterOf(int slot);
  /// Returns the replica of a node that started as a master.
  [[nodiscard]] std::size_t ReplicaOf(std::size_t master) const { return master + masters_; }
  /// Returns whether a node accepts writes to the slot now. Sends nothing to stopped nodes.
  [[nodiscard]] bool Serves(int slot);
  /// Waits until every node in use reports cluster_state:ok and all slots as served, and every
  /// replica is connected to its master.
  void AwaitWhole();

  /// Moves a slot as redis-cli does: all its keys, up to 100 per MIGRATE.
  void MoveSlot(int slot, std::size_t from, std::size_t to);

  /// Runs a command on every node in use. Returns the first reply that is not `OK`, or `OK`.
  std::string All(const std::vector<std::string>& arguments);
  /// Returns the keys on the node that match `pattern`.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "redis/redis_server.hpp"

namespace tidegate::redis_test {

class RedisCluster;

/// The migration of one slot from one master to another, in steps: between Begin and End, the
/// source replies ASK for keys that have moved. Uses its own connections, so that another thread
/// may run it. Throws if the cluster refuses a step.
class SlotMove {
 public:
  SlotMove(RedisCluster& cluster, int slot, std::size_t from, std::size_t to);

  /// Starts the migration. First waits until the masters agree on each other's epochs: a claim with
  /// a lower epoch than the last one would be lost, and with it the keys of the slot.
  void Begin();
  /// Moves up to `most` keys with one MIGRATE. Returns how many there were.
  std::size_t MoveKeys(int most);
  /// Moves only `key`.
  void MoveKey(const std::string& key);
  [[nodiscard]] std::vector<std::string> KeysLeft(int most);
  /// Gives the slot to the target node and informs all masters.
  void End();

 private:
  struct Other {
    std::string id;
    RedisClient client;
  };
  void Migrate(const std::vector<std::string>& keys);
  [[nodiscard]] bool Agreed();

  std::string slot_;
  std::string from_id_;
  std::string to_id_;
  int to_port_;
  RedisClient from_;
  RedisClient to_;
  std::vector<Other> others_;
};

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "redis/redis_server.hpp"

namespace tidegate::redis_test {

class RedisCluster;

/// One slot on its way from one master to another, in steps: between Begin and End the keys that
/// have gone are answered with ASK. On connections of its own, so that a thread may do it. Throws
/// where the cluster refuses.
class SlotMove {
 public:
  SlotMove(RedisCluster& cluster, int slot, std::size_t from, std::size_t to);

  /// Waits first until the masters agree on who is of which epoch: a claim of a lower one than the
  /// last would be lost, and the slot's keys with it.
  void Begin();
  /// Moves at most so many keys in one MIGRATE; how many there were.
  std::size_t MoveKeys(int most);
  /// Only that one.
  void MoveKey(const std::string& key);
  [[nodiscard]] std::vector<std::string> KeysLeft(int most);
  /// Gives the slot to the other node; all masters are informed.
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

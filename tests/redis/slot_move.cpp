// SPDX-License-Identifier: Apache-2.0
#include "redis/slot_move.hpp"

#include <stdexcept>

#include "redis/redis_cluster.hpp"

namespace tidegate::redis_test {
namespace {

void MustBeOk(const std::string& answer, const std::string& what) {
  if (answer != "OK") throw std::runtime_error(what + ": " + answer);
}

/// CRC16-CCITT (XModem), bit by bit: what Redis Cluster takes modulo 16384.
int SlotOfText(const std::string& text) {
  unsigned crc = 0;
  for (const char c : text) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = ((crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U) & 0xFFFFU;
    }
  }
  return static_cast<int>(crc % RedisCluster::kSlots);
}

std::vector<std::string> AllTags() {
  std::vector<std::string> tags(RedisCluster::kSlots);
  int open = RedisCluster::kSlots;
  for (int i = 0; open > 0; ++i) {
    std::string text = std::to_string(i);
    std::string& tag = tags[static_cast<std::size_t>(SlotOfText(text))];
    if (!tag.empty()) continue;
    tag = std::move(text);
    --open;
  }
  return tags;
}

}  // namespace

const std::string& TagOf(int slot) {
  static const std::vector<std::string> tags = AllTags();
  return tags[static_cast<std::size_t>(slot)];
}

SlotMove::SlotMove(RedisCluster& cluster, int slot, std::size_t from, std::size_t to)
    : slot_(std::to_string(slot)),
      from_id_(cluster.Id(from)),
      to_id_(cluster.Id(to)),
      to_port_(cluster[to].port()),
      from_(cluster[from].Connect()),
      to_(cluster[to].Connect()) {
  for (std::size_t i = 0; i < cluster.masters(); ++i) {
    if (i != from && i != to && cluster[i].running()) others_.push_back(cluster[i].Connect());
  }
}

void SlotMove::Begin() {
  MustBeOk(to_.Text({"CLUSTER", "SETSLOT", slot_, "IMPORTING", from_id_}), "importing");
  MustBeOk(from_.Text({"CLUSTER", "SETSLOT", slot_, "MIGRATING", to_id_}), "migrating");
}

std::vector<std::string> SlotMove::KeysLeft(int most) {
  const Reply reply = from_.Command({"CLUSTER", "GETKEYSINSLOT", slot_, std::to_string(most)});
  std::vector<std::string> keys;
  for (std::size_t i = 0; reply && i < reply->elements; ++i) {
    keys.emplace_back(reply->element[i]->str, reply->element[i]->len);
  }
  return keys;
}

std::size_t SlotMove::MoveKeys(int most) {
  const std::vector<std::string> keys = KeysLeft(most);
  if (!keys.empty()) Migrate(keys);
  return keys.size();
}

void SlotMove::MoveKey(const std::string& key) { Migrate({key}); }

void SlotMove::Migrate(const std::vector<std::string>& keys) {
  std::vector<std::string> command = {"MIGRATE", "127.0.0.1", std::to_string(to_port_), "", "0",
                                      "5000",    "KEYS"};
  command.insert(command.end(), keys.begin(), keys.end());
  const std::string answer = from_.Text(command);
  // One that ended by itself in between.
  if (answer != "NOKEY") MustBeOk(answer, "migrate");
}

void SlotMove::End() {
  // First those that take part; the new owner raises the epoch by which the others believe it.
  MustBeOk(to_.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "new owner");
  MustBeOk(from_.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "old owner");
  for (RedisClient& other : others_) {
    MustBeOk(other.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "another");
  }
}

}  // namespace tidegate::redis_test

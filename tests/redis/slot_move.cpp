// SPDX-License-Identifier: Apache-2.0
#include "redis/slot_move.hpp"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "redis/redis_cluster.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

void MustBeOk(const std::string& answer, const std::string& what) {
  if (answer != "OK") throw std::runtime_error(what + ": " + answer);
}

std::string EpochOf(RedisClient& node) {
  const std::string info = node.Text({"CLUSTER", "INFO"});
  constexpr std::string_view kName = "cluster_my_epoch:";
  const std::size_t at = info.find(kName);
  return at == std::string::npos ? info : std::to_string(std::stol(info.substr(at + kName.size())));
}

}  // namespace

SlotMove::SlotMove(RedisCluster& cluster, int slot, std::size_t from, std::size_t to)
    : slot_(std::to_string(slot)),
      from_id_(cluster.Id(from)),
      to_id_(cluster.Id(to)),
      to_port_(cluster[to].port()),
      from_(cluster[from].Connect()),
      to_(cluster[to].Connect()) {
  for (std::size_t i = 0; i < cluster.masters(); ++i) {
    if (i != from && i != to && cluster[i].running()) {
      others_.push_back({cluster.Id(i), cluster[i].Connect()});
    }
  }
}

bool SlotMove::Agreed() {
  std::map<std::string, std::string> own = {{from_id_, EpochOf(from_)}, {to_id_, EpochOf(to_)}};
  for (Other& other : others_) own[other.id] = EpochOf(other.client);
  std::set<std::string> epochs;
  for (const auto& [id, epoch] : own) epochs.insert(epoch);
  if (epochs.size() < own.size()) return false;
  const std::string known = to_.Text({"CLUSTER", "NODES"});
  std::istringstream in(known);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string id, address, flags, master, ping, pong, epoch;
    words >> id >> address >> flags >> master >> ping >> pong >> epoch;
    if (own.contains(id) && own[id] != epoch) return false;
  }
  return true;
}

void SlotMove::Begin() {
  if (!test::WaitUntil([&] { return Agreed(); }))
    throw std::runtime_error("the masters do not agree");
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
  // NOKEY: the key expired in the meantime.
  if (answer != "NOKEY") MustBeOk(answer, "migrate");
}

void SlotMove::End() {
  // Informs the two nodes that take part first. The new owner raises its epoch, which makes the
  // other masters accept the claim.
  MustBeOk(to_.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "new owner");
  MustBeOk(from_.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "old owner");
  for (Other& other : others_) {
    MustBeOk(other.client.Text({"CLUSTER", "SETSLOT", slot_, "NODE", to_id_}), "another");
  }
}

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_cluster.hpp"

#include <algorithm>
#include <csignal>
#include <sstream>
#include <stdexcept>

#include "redis/slot_move.hpp"
#include "redis/slots.hpp"
#include "support/ports.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

void MustBe(const std::string& answer, std::string_view wanted, std::string_view what) {
  if (answer != wanted) throw std::runtime_error(std::string(what) + ": " + answer);
}

/// The fields of one line of CLUSTER NODES.
struct NodeLine {
  std::string id, address, flags, master, ping, pong, epoch, link;
  std::vector<std::string> slots;
};

std::vector<NodeLine> LinesOf(const std::string& nodes) {
  std::vector<NodeLine> lines;
  std::istringstream in(nodes);
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    NodeLine line;
    words >> line.id >> line.address >> line.flags >> line.master >> line.ping >> line.pong >>
        line.epoch >> line.link;
    for (std::string slots; words >> slots;) line.slots.push_back(slots);
    lines.push_back(std::move(line));
  }
  return lines;
}

bool Covers(const std::string& slots, int slot) {
  if (slots.starts_with('[')) return false;  // A slot that is migrating.
  const std::size_t dash = slots.find('-');
  const int first = std::stoi(slots);
  const int last = dash == std::string::npos ? first : std::stoi(slots.substr(dash + 1));
  return first <= slot && slot <= last;
}

std::vector<std::string> ArgumentsOf(const RedisCluster::Options& options) {
  std::vector<std::string> arguments = {"--cluster-enabled",
                                        "yes",
                                        "--cluster-node-timeout",
                                        std::to_string(options.node_timeout_ms),
                                        "--cluster-require-full-coverage",
                                        "no",
                                        "--cluster-allow-replica-migration",
                                        "no",
                                        "--cluster-replica-validity-factor",
                                        "0",
                                        "--repl-diskless-sync-delay",
                                        "0",
                                        "--repl-ping-replica-period",
                                        "1"};
  if (options.wire == RedisServer::Wire::kTls) {
    arguments.insert(arguments.end(), {"--tls-cluster", "yes", "--tls-replication", "yes"});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

}  // namespace

RedisCluster::RedisCluster(const Options& options)
    : masters_(static_cast<std::size_t>(options.masters)), wire_(options.wire) {
  const std::size_t count = masters_ * (options.replicas ? 2 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    nodes_.push_back(std::make_unique<RedisServer>(RedisServer::Options{
        .arguments = ArgumentsOf(options), .port = test::FreeClusterPort(), .wire = options.wire}));
    ids_.push_back(nodes_[i]->Text({"CLUSTER", "MYID"}));
    MustBe(nodes_[i]->Text({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}), "OK", "epoch");
  }
  stopped_.resize(count, false);
  Divide(kSlots / options.masters);
  Meet();
  for (std::size_t i = masters_; i < count; ++i) {
    MustBe(nodes_[i]->Text({"CLUSTER", "REPLICATE", ids_[i - masters_]}), "OK", "replicate");
  }
  AwaitWhole();
}

void RedisCluster::Divide(int slots_each) {
  for (std::size_t i = 0; i < masters_; ++i) {
    const int first = static_cast<int>(i) * slots_each;
    const int last = i + 1 == masters_ ? kSlots - 1 : first + slots_each - 1;
    MustBe(
        nodes_[i]->Text({"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)}),
        "OK", "slots");
  }
}

void RedisCluster::Meet() {
  // Introduces every node to every other, so that no node has to wait for gossip.
  for (const auto& one : nodes_) {
    for (const auto& other : nodes_) {
      if (one == other) continue;
      MustBe(one->Text({"CLUSTER", "MEET", "127.0.0.1", std::to_string(other->port())}), "OK",
             "meet");
    }
  }
  const bool met = test::WaitUntil([&] {
    return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
      const std::vector<NodeLine> lines = LinesOf(node->Text({"CLUSTER", "NODES"}));
      return lines.size() == nodes_.size() &&
             std::all_of(lines.begin(), lines.end(), [](const NodeLine& line) {
               return line.flags.find("handshake") == std::string::npos;
             });
    });
  });
  if (!met)
    throw std::runtime_error(std::string(test::kTiming) +
                             "the cluster nodes do not find each other:\n" + nodes_[0]->Output());
}

std::string RedisCluster::url(std::string_view user) const {
  std::string url = wire_ == RedisServer::Wire::kTls ? "rediss+cluster://" : "redis+cluster://";
  url += user;
  for (std::size_t i = 0; i < nodes_.size(); ++i) url += (i == 0 ? "" : ",") + nodes_[i]->address();
  return url;
}

int RedisCluster::SlotOf(const std::string& key) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (IsInUse(i)) return std::stoi(nodes_[i]->Text({"CLUSTER", "KEYSLOT", key}));
  }
  throw std::runtime_error("no cluster node is running");
}

std::size_t RedisCluster::MasterOf(int slot) {
  // A node may know of a change before the others: the claim with the highest epoch is right.
  std::size_t master = size();
  long highest = -1;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!IsInUse(i)) continue;
    for (const NodeLine& line : LinesOf(nodes_[i]->Text({"CLUSTER", "NODES"}))) {
      const auto found = std::find(ids_.begin(), ids_.end(), line.id);
      const bool covers =
          std::any_of(line.slots.begin(), line.slots.end(),
                      [&](const std::string& slots) { return Covers(slots, slot); });
      if (!covers || found == ids_.end() || std::stol(line.epoch) <= highest) continue;
      highest = std::stol(line.epoch);
      master = static_cast<std::size_t>(found - ids_.begin());
    }
  }
  if (master == size()) throw std::runtime_error("no node has slot " + std::to_string(slot));
  return master;
}

bool RedisCluster::Serves(int slot) {
  // Deletes a key of that slot that does not exist, which is a write without an effect. The key
  // belongs to the cluster itself, because a key of a test would be moved.
  const std::string key = "probe:{" + TagOf(slot) + "}";
  for (std::size_t i = 0; i < size(); ++i) {
    if (IsInUse(i) && nodes_[i]->Text({"DEL", key}) == "0") return true;
  }
  return false;
}

bool RedisCluster::Whole(std::size_t node) {
  RedisServer& server = *nodes_[node];
  const std::string info = server.Text({"CLUSTER", "INFO"});
  if (info.find("cluster_state:ok") == std::string::npos ||
      info.find("cluster_slots_ok:16384") == std::string::npos) {
    return false;
  }
  const std::string replication = server.Text({"INFO", "replication"});
  return replication.find("role:master") != std::string::npos ||
         replication.find("master_link_status:up") != std::string::npos;
}

void RedisCluster::AwaitWhole() {
  const bool whole = test::WaitUntil(
      [&] {
        for (std::size_t i = 0; i < size(); ++i) {
          if (IsInUse(i) && !Whole(i)) return false;
        }
        return true;
      },
      20s);
  if (!whole)
    throw std::runtime_error(std::string(test::kTiming) +
                             "the cluster does not serve all slots:\n" + nodes_[0]->Output());
}

void RedisCluster::MoveSlot(int slot, std::size_t from, std::size_t to) {
  SlotMove move(*this, slot, from, to);
  move.Begin();
  while (move.MoveKeys(100) > 0) {
  }
  move.End();
}

std::string RedisCluster::All(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!IsInUse(i)) continue;
    if (std::string answer = nodes_[i]->Text(arguments); answer != "OK") return answer;
  }
  return "OK";
}

std::vector<std::string> RedisCluster::Keys(std::size_t node, const std::string& pattern) {
  std::istringstream in(nodes_[node]->Text({"KEYS", pattern}));
  std::vector<std::string> keys;
  for (std::string key; in >> key;) keys.push_back(key);
  return keys;
}

void RedisCluster::Stop(std::size_t node) {
  nodes_[node]->Signal(SIGSTOP);
  stopped_[node] = true;
}

void RedisCluster::Continue(std::size_t node) {
  nodes_[node]->Signal(SIGCONT);
  stopped_[node] = false;
}

double RedisCluster::CpuSeconds() const {
  double total = 0;
  for (const auto& node : nodes_) total += node->running() ? node->CpuSeconds() : 0;
  return total;
}

}  // namespace tidegate::redis_test

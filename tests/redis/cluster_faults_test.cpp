// SPDX-License-Identifier: Apache-2.0
// Edge cases of a Redis Cluster: slots that migrate, nodes that left, floods, and servers that send
// false replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "redis/cluster_node_case.hpp"
#include "redis/slot_move.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

/// Returns the number behind `name` in the output of `INFO` or `CLUSTER INFO`; 0 if there is none.
std::int64_t NumberIn(const std::string& info, const std::string& name) {
  const auto at = info.find(name);
  return at == std::string::npos ? 0 : std::stoll(info.substr(at + name.size()));
}

class ClusterFaultsTest : public ClusterNodeCase {};

// While a slot migrates, a script on its source node may not write a key that it has just deleted
// ("Script attempted to access a non local key"). So a refund of a sliding log must not delete the
// key.
TEST_F(ClusterFaultsTest, SlidingLogSurvivesCompensationDuringSlotMigration) {
  const Quota log = Of({.algorithm = Algorithm::kSlidingLog, .limit = 10, .period = 24h});
  const Quota one = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1, .period = 24h});
  const std::string& who = On(0, 1);
  const Charge logged{"log", who, &log};
  const Charge full{"full", On(1, 1), &one};
  ASSERT_TRUE(node_->Apply(full).allowed);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(node_->Apply(logged).allowed);
  SlotMove move(*cluster_, SlotOfTag(who), 0, 2);
  move.Begin();
  EXPECT_FALSE(node_->Ask(CallResult{.charges = {logged, full}}).allowed);
  WaitUntilNoCallWaits();
  const std::string key = "tg:sl:log:{" + who + "}";
  EXPECT_EQ((*cluster_)[0].Text({"ZCARD", key}), "8")
      << "kept " << node_->redis_store().stats().failed_compensations.get() << " failed writes "
      << node_->redis_store().redis_stats().failed_writes.get();
  while (move.MoveKeys(10) > 0) {
  }
  move.End();
  int admitted = 8;
  for (int i = 0; i < 20; ++i) admitted += node_->Apply(logged).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 10) << "of a limit of 10 in every window";
  cluster_->MoveSlot(SlotOfTag(who), 2, 0);
}

// When all leases of a key have expired, the script must write the new lease before it removes the
// expired ones: a script on a migrating slot may not write a key that it has deleted.
TEST_F(ClusterFaultsTest, FirstLeaseIsHeldWhileItsSlotMoves) {
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1s});
  const std::string& who = On(0, 2);
  const auto lease = [&](std::string_view id) {
    return Charge{.rule = "c", .identity = who, .quota = &leases, .lease = id};
  };
  ASSERT_TRUE(node_->Apply(lease("old")).allowed);
  ASSERT_TRUE(test::WaitUntil([&] {
    return node_->Ask(CallResult{.charges = {lease("")}, .kind = Call::Kind::kPeek}).allowed;
  }));
  SlotMove move(*cluster_, SlotOfTag(who), 0, 2);
  move.Begin();
  int admitted = 0;
  for (const char* id : {"a", "b", "c", "d"}) admitted += node_->Apply(lease(id)).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 1) << "of a limit of 1; failed writes "
                         << node_->redis_store().redis_stats().failed_writes.get();
  while (move.MoveKeys(10) > 0) {
  }
  move.End();
  cluster_->MoveSlot(SlotOfTag(who), 2, 0);
}

// A batch contains a reset and then a charge of the same key; the charge must not be lost with the
// deleted key.
TEST_F(ClusterFaultsTest, ChargeAfterResetIsCountedWhileItsSlotMoves) {
  const Quota quota = Of({.algorithm = Algorithm::kFixedWindow, .limit = 2, .period = 24h});
  const std::string& who = On(0, 3);
  const Charge charge{"r", who, &quota};
  ASSERT_TRUE(node_->Apply(charge).allowed);
  SlotMove move(*cluster_, SlotOfTag(who), 0, 2);
  move.Begin();
  std::vector<CallResult> all = {CallResult{.charges = {charge}, .kind = Call::Kind::kReset},
                                 CallResult{.charges = {charge}}, CallResult{.charges = {charge}}};
  node_->Ask(all);
  int admitted = 0;
  for (std::size_t i = 1; i < all.size(); ++i) admitted += all[i].allowed ? 1 : 0;
  for (int i = 0; i < 5; ++i) admitted += node_->Apply(charge).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 2) << "of a limit of 2; failed writes "
                         << node_->redis_store().redis_stats().failed_writes.get();
  while (move.MoveKeys(10) > 0) {
  }
  move.End();
  cluster_->MoveSlot(SlotOfTag(who), 2, 0);
}

// A client that acquires a lease that it already holds is allowed. If another slot then denies the
// call, the client keeps its lease: a denied call takes nothing away.
TEST_F(ClusterFaultsTest, HeldLeaseSurvivesDeniedCrossSlotCall) {
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1h});
  const Charge mine{.rule = "c", .identity = On(0, 4), .quota = &leases, .lease = "mine"};
  Charge others{.rule = "c", .identity = On(1, 4), .quota = &leases, .lease = "theirs"};
  ASSERT_TRUE(node_->Apply(mine).allowed);
  ASSERT_TRUE(node_->Apply(others).allowed);
  others.lease = "mine";
  EXPECT_FALSE(node_->Ask(CallResult{.charges = {mine, others}}).allowed);
  WaitUntilNoCallWaits();
  EXPECT_EQ((*cluster_)[0].Text({"ZRANGE", "tg:cc:c:{" + On(0, 4) + "}", "0", "-1"}), "mine");
  Charge another = mine;
  another.lease = "another";
  EXPECT_FALSE(node_->Apply(another).allowed) << "a second lease was granted for a limit of 1";
}

// `redis-cli --cluster del-node` forgets and resets a master that has given its slots away.
// Tidegate stays connected to this node for ten more seconds, and the node still replies to
// requests, but it owns no slot.
TEST_F(ClusterFaultsTest, IgnoresNodeThatLeftTheCluster) {
  RedisServer leaving({.arguments = {"--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
                                     "--cluster-require-full-coverage", "no"},
                       .port = test::FreeClusterPort()});
  const std::string id = leaving.Text({"CLUSTER", "MYID"});
  ASSERT_EQ(leaving.Text({"CLUSTER", "SET-CONFIG-EPOCH", "99"}), "OK");
  for (std::size_t i = 0; i < 3; ++i) {
    RedisServer& known = (*cluster_)[i];
    EXPECT_EQ(leaving.Text({"CLUSTER", "MEET", "127.0.0.1", std::to_string(known.port())}), "OK");
    EXPECT_EQ(known.Text({"CLUSTER", "MEET", "127.0.0.1", std::to_string(leaving.port())}), "OK");
  }
  ASSERT_TRUE(test::WaitUntil([&] {
    for (std::size_t i = 0; i < 3; ++i) {
      if ((*cluster_)[i].Text({"CLUSTER", "INFO"}).find("cluster_known_nodes:4") ==
          std::string::npos) {
        return false;
      }
    }
    return leaving.Text({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
  })) << leaving.Text({"CLUSTER", "INFO"})
      << (*cluster_)[0].Text({"CLUSTER", "NODES"});
  const std::string& who = On(0, 5);
  const std::string slot = std::to_string(SlotOfTag(who));
  const auto give = [&](const std::string& to) {
    EXPECT_EQ(leaving.Text({"CLUSTER", "SETSLOT", slot, "NODE", to}), "OK");
    EXPECT_EQ(cluster_->All({"CLUSTER", "SETSLOT", slot, "NODE", to}), "OK");
  };
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  const Charge there{
      .rule = "r", .identity = who, .quota = &quota, .on_failure = OnFailure::kClosed};
  give(id);
  ASSERT_EQ(node_->Apply(there).decisions[0].decided_by, DecidedBy::kStore);
  ASSERT_TRUE(
      test::WaitUntil([&] { return node_->redis_store().redis_stats().connected.get() == 4; }));
  EXPECT_EQ(leaving.Text({"FLUSHALL"}), "OK");
  give(cluster_->Id(0));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*cluster_)[i].Text({"CLUSTER", "FORGET", id}), "OK");
  }
  EXPECT_EQ(leaving.Text({"CLUSTER", "RESET", "SOFT"}), "OK");
  const auto until = std::chrono::steady_clock::now() + 2s;
  std::map<DecidedBy, int> sources;
  const Charge elsewhere{
      .rule = "r", .identity = On(1, 5), .quota = &quota, .on_failure = OnFailure::kClosed};
  int moves = 0;
  while (std::chrono::steady_clock::now() < until) {
    // Every 100th round moves an unrelated slot, so that Tidegate has a reason to read the topology
    // again.
    if (++moves % 100 == 1) {
      const std::string other = std::to_string(SlotOfTag(On(2, 50)));
      const std::size_t to = moves % 200 == 1 ? 0 : 2;
      EXPECT_EQ(cluster_->All({"CLUSTER", "SETSLOT", other, "NODE", cluster_->Id(to)}), "OK");
      (void)node_->Ask(
          CallResult{.charges = {{"r", On(2, 50), &quota}}, .kind = Call::Kind::kPeek});
    }
    ++sources[node_->Apply(elsewhere).decisions[0].decided_by];
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(sources[DecidedBy::kClosed], 0)
      << "of " << sources[DecidedBy::kStore]
      << " decisions by the store; the master of this slot is healthy";
  const std::string other = std::to_string(SlotOfTag(On(2, 50)));
  EXPECT_EQ(cluster_->All({"CLUSTER", "SETSLOT", other, "NODE", cluster_->Id(2)}), "OK");
}

// In a cluster, one round sends a batch per slot. After SCRIPT FLUSH, the long text of the script
// is sent once and not once for each of these batches.
TEST_F(ClusterFaultsTest, MissingScriptIsSentAgainOnce) {
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  RedisServer& redis = (*cluster_)[0];
  std::vector<CallResult> all;
  for (int i = 0; i < 128; ++i) all.push_back({.charges = {{"r", TagOf(10 + i), &quota}}});
  node_->Ask(all);
  ASSERT_EQ(redis.Text({"SCRIPT", "FLUSH"}), "OK");
  ASSERT_EQ(redis.Text({"CONFIG", "RESETSTAT"}), "OK");
  node_->Ask(all);
  const std::string stats = redis.Text({"INFO", "commandstats"});
  EXPECT_LE(NumberIn(stats, "cmdstat_script|load:calls="), 2);
  EXPECT_LE(NumberIn(redis.Text({"INFO", "stats"}), "total_net_input_bytes:"), 1'000'000);
}

// A cluster node refuses each batch with an error that names the slot of the batch, so the errors
// differ.
TEST_F(ClusterFaultsTest, LogsFewLinesWhenClusterNodeIsConfiguredAsSingleRedis) {
  std::atomic<int> lines = 0;
  RedisStore::Options options = To((*cluster_)[0].url());
  options.log = [&](RedisStore::Severity, const std::string&) { ++lines; };
  Node plain(options);
  plain.WaitUntilReady();
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  for (int i = 0; i < 200; ++i) (void)plain.Apply({"r", TagOf(6000 + i), &quota});
  EXPECT_LE(lines, 10) << "log lines for 200 requests";
}

// To refund a unit to a sliding log, the script reads the whole log, so Tidegate must not do this
// for every denied call of a flood.
TEST_F(ClusterFaultsTest, DeniedCrossSlotCallDoesNotReadLongLogs) {
  const Quota log = Of({.algorithm = Algorithm::kSlidingLog, .limit = 10'000, .period = 24h});
  const Quota one = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1, .period = 24h});
  const Charge global{"log", On(0, 6), &log};
  const Charge full{"full", On(1, 6), &one};
  RedisServer& redis = (*cluster_)[0];
  ASSERT_EQ(redis.Text({"EVAL",
                        "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] for i = 1, "
                        "9000 do redis.call('ZADD', KEYS[1], string.format('%d', now - 9001 + "
                        "i), '1:' .. i) end return 'OK'",
                        "1", "tg:sl:log:{" + On(0, 6) + "}"}),
            "OK");
  ASSERT_TRUE(node_->Apply(full).allowed);
  ASSERT_TRUE(node_->Apply(global).allowed);
  ASSERT_EQ(redis.Text({"CONFIG", "RESETSTAT"}), "OK");
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(node_->Ask(CallResult{.charges = {global, full}}).allowed);
    WaitUntilNoCallWaits();
  }
  const std::string stats = redis.Text({"INFO", "commandstats"});
  EXPECT_LE(NumberIn(stats, "cmdstat_evalsha:calls="), 4);
}

// A flood of equal calls that are denied and whose charges span two slots.
TEST_F(ClusterFaultsTest, FloodOfDeniedCrossSlotCallsRunsFewScripts) {
  const Quota many = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1'000'000, .period = 24h});
  const Quota one = Of({.algorithm = Algorithm::kFixedWindow, .limit = 1, .period = 24h});
  const Charge global{"global", On(0, 7), &many};
  const Charge full{"full", On(1, 7), &one};
  ASSERT_TRUE(node_->Apply(full).allowed);
  const auto published = [&] {
    return NumberIn((*cluster_)[0].Text({"CLUSTER", "INFO"}),
                    "cluster_stats_messages_publish_sent:");
  };
  const std::int64_t before = published();
  ASSERT_EQ((*cluster_)[0].Text({"CONFIG", "RESETSTAT"}), "OK");
  for (int i = 0; i < 200; ++i)
    EXPECT_FALSE(node_->Ask(CallResult{.charges = {global, full}}).allowed);
  WaitUntilNoCallWaits();
  EXPECT_LE(NumberIn((*cluster_)[0].Text({"INFO", "commandstats"}), "cmdstat_evalsha:calls="), 20)
      << "script calls on the slot that admits, for 200 requests that the other slot denies";
  EXPECT_LE(published() - before, 20) << "messages on the cluster bus";
}

TEST_F(ClusterFaultsTest, LastLeaseIsReleasedWhileItsSlotMoves) {
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 1h});
  const std::string& who = On(0, 9);
  const Charge lease{.rule = "c",
                     .identity = who,
                     .quota = &leases,
                     .lease = "l",
                     .on_failure = OnFailure::kClosed};
  ASSERT_TRUE(node_->Apply(lease).allowed);
  SlotMove move(*cluster_, SlotOfTag(who), 0, 2);
  move.Begin();
  const CallResult released =
      node_->Ask(CallResult{.charges = {lease}, .kind = Call::Kind::kRelease});
  EXPECT_EQ(released.applied, Applied::kYes);
  EXPECT_EQ(released.decisions[0].decided_by, DecidedBy::kStore);
  EXPECT_EQ(node_->redis_store().redis_stats().failed_writes.get(), 0U);
  while (move.MoveKeys(10) > 0) {
  }
  move.End();
  cluster_->MoveSlot(SlotOfTag(who), 2, 0);
}

// A round that still accepts calls finds its batches by index, so a batch without waiting calls
// must stay in the round.
TEST_F(ClusterFaultsTest, SendsRoundThatContainsEmptyBatches) {
  RedisStore::Options options = To(cluster_->url());
  options.redis.deadline = 200ms;
  Node node(options);
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  const auto ask = [&](int slot) {
    return std::thread([&node, &quota, slot] { (void)node.Apply({"r", TagOf(slot), &quota}); });
  };
  (void)TagOf(300);  // TagOf computes a table at its first call, which takes time.
  cluster_->Stop(0);
  std::vector<std::thread> asking;
  asking.push_back(ask(300));  // Is sent to Redis and gets no reply.
  std::this_thread::sleep_for(10ms);
  asking.push_back(ask(301));  // Waits in the next round and times out after 200 ms.
  std::this_thread::sleep_for(290ms);
  asking.push_back(ask(302));          // Joins the same round as 301.
  std::this_thread::sleep_for(130ms);  // At 400 ms the batch of 301 is removed.
  asking.push_back(ask(302));
  cluster_->Continue(0);
  for (std::thread& thread : asking) thread.join();
}

/// Starts new calls from within `finished` while slots move and Redis loses its scripts and
/// connections, and in the end the node is destroyed. Checks that each call finishes exactly once
/// per start.
TEST_F(ClusterFaultsTest, FinishesEachCallOnceWhileTopologyChanges) {
  const Quota few = Of({.algorithm = Algorithm::kFixedWindow, .limit = 40, .period = 1s});
  const Quota log = Of({.algorithm = Algorithm::kSlidingLog, .limit = 40, .period = 1s});
  const Quota leases = Of({.algorithm = Algorithm::kConcurrency, .limit = 4, .period = 1s});
  struct Again : Call {
    std::vector<Charge> list;
    std::vector<Decision> answers;
    RedisStore* redis_store = nullptr;
    net::Reactor* reactor = nullptr;
    std::atomic<bool>* stop = nullptr;
    std::atomic<int>* under_way = nullptr;
    std::atomic<std::uint64_t>* total = nullptr;
    bool open = false;
    int depth = 0;
    std::uint32_t number = 0;

    void Begin() {
      open = true;
      ++number;
      kind = number % 11 == 0 ? Kind::kPeek : number % 13 == 0 ? Kind::kDebit : Kind::kApply;
      for (const Charge& charge : list) {
        if (kind != Kind::kApply && charge.quota->algorithm() == Algorithm::kConcurrency) {
          kind = Kind::kApply;
        }
      }
      charges = list;
      decisions = answers;
      finished = [](Call& call) noexcept { static_cast<Again&>(call).Ended(); };
      redis_store->Start(*this);
    }
    void Ended() {
      if (!open) std::abort();
      open = false;
      ++*total;
      if (*stop) {
        --*under_way;
        return;
      }
      if (++depth < 3) {
        Begin();
        --depth;
        return;
      }
      --depth;
      reactor->Post([this] { Begin(); });
    }
  };
  for (int round = 0; round < 3; ++round) {
    RedisStore::Options options = To(cluster_->url());
    options.redis.deadline = round == 0 ? 1s : 20ms;
    std::atomic<bool> stop = false;
    std::atomic<int> under_way = 0;
    std::atomic<std::uint64_t> total = 0;
    std::vector<std::unique_ptr<Again>> calls;
    auto node = std::make_unique<Node>(options);
    node->WaitUntilReady();
    node->Run([&](RedisStore& redis_store) {
      for (int i = 0; i < 120; ++i) {
        auto call = std::make_unique<Again>();
        const std::string& here = On(0, 10 + i % 4);
        call->list.push_back({.rule = "a", .identity = here, .quota = &few});
        if (i % 2 == 0) call->list.push_back({.rule = "b", .identity = here, .quota = &log});
        if (i % 3 == 0) call->list.push_back({.rule = "a", .identity = On(1, 10), .quota = &few});
        if (i % 5 == 0) {
          call->list.push_back(
              {.rule = "c", .identity = On(2, 10), .quota = &leases, .lease = "l"});
        }
        if (i % 7 == 0) {
          call->list.push_back(
              {.rule = "s", .identity = On(2, 11), .quota = &few, .mode = Mode::kShadow});
        }
        for (Charge& charge : call->list) {
          charge.on_failure = i % 4 == 0   ? OnFailure::kClosed
                              : i % 4 == 1 ? OnFailure::kOpen
                                           : OnFailure::kLocal;
        }
        call->answers.resize(call->list.size());
        call->redis_store = &redis_store;
        call->reactor = &node->reactor();
        call->stop = &stop;
        call->under_way = &under_way;
        call->total = &total;
        calls.push_back(std::move(call));
      }
      for (auto& call : calls) {
        ++under_way;
        call->Begin();
      }
    });
    const auto until = std::chrono::steady_clock::now() + 1s;
    for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
      const int slot = SlotOfTag(On(0, 10 + i % 4));
      try {
        const std::size_t from = cluster_->MasterOf(slot);
        SlotMove move(*cluster_, slot, from, from == 0 ? 1 : 0);
        move.Begin();
        std::this_thread::sleep_for(20ms);
        (void)move.MoveKeys(1);
        std::this_thread::sleep_for(20ms);
        while (move.MoveKeys(10) > 0) {
        }
        move.End();
      } catch (const std::runtime_error&) {
        // The nodes do not agree yet on the owner of the slot.
        (void)cluster_->All({"CLUSTER", "SETSLOT", std::to_string(slot), "STABLE"});
        std::this_thread::sleep_for(100ms);
      }
      if (i % 3 == 0) (void)(*cluster_)[0].Text({"SCRIPT", "FLUSH"});
      if (i % 3 == 1) (void)(*cluster_)[1].Text({"CLIENT", "KILL", "TYPE", "pubsub"});
      if (i % 5 == 2) (void)(*cluster_)[0].Text({"CLIENT", "KILL", "TYPE", "pubsub"});
    }
    if (round == 2) {
      // Destroys the node while calls are in flight.
      stop = true;
      node.reset();
    } else {
      stop = true;
      EXPECT_TRUE(test::WaitUntil([&] { return under_way == 0; }));
      node.reset();
    }

    EXPECT_GT(total, 1000U);
    for (const auto& call : calls) EXPECT_FALSE(call->open);
  }
}

// --- A fake Redis that sends false replies --------------------------------------------

/// A fake cluster node that claims to own all slots; `reply` returns its reply to each EVAL or
/// EVALSHA.
class FakeCluster {
 public:
  explicit FakeCluster(std::function<std::string(int)> reply) : reply_(std::move(reply)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 100) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen on a socket");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~FakeCluster() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    for (auto& thread : threads_) thread.join();
    for (const int fd : open_) close(fd);
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  void Accept() {
    while (true) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      open_.push_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }
  void Serve(int fd) {
    std::string in;
    std::array<char, 65536> bytes;
    while (true) {
      const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      in.append(bytes.data(), static_cast<std::size_t>(got));
      std::string out;
      while (true) {
        std::vector<std::string> words;
        const std::size_t used = Parse(in, words);
        if (used == 0) break;
        in.erase(0, used);
        out += Answer(words);
      }
      if (!out.empty() && send(fd, out.data(), out.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
  static std::size_t Parse(const std::string& in, std::vector<std::string>& words) {
    std::size_t at = 0;
    const auto number = [&]() -> long {
      const auto end = in.find("\r\n", at);
      if (end == std::string::npos) return -1;
      const long value = std::stol(in.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    const long count = number();
    if (count < 0) return 0;
    for (long i = 0; i < count; ++i) {
      const long size = number();
      if (size < 0 || in.size() < at + static_cast<std::size_t>(size) + 2) return 0;
      words.push_back(in.substr(at, static_cast<std::size_t>(size)));
      at += static_cast<std::size_t>(size) + 2;
    }
    return at;
  }
  std::string Answer(const std::vector<std::string>& words) {
    if (words[0] == "HELLO") return "%1\r\n+server\r\n+redis\r\n";
    if (words[0] == "SUBSCRIBE") {
      return ">3\r\n+subscribe\r\n$" + std::to_string(words[1].size()) + "\r\n" + words[1] +
             "\r\n:1\r\n";
    }
    if (words[0] == "SCRIPT") return "$40\r\n" + std::string(40, 'a') + "\r\n";
    if (words[0] == "CLUSTER") {
      return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port_) +
             "\r\n";
    }
    if (words[0].starts_with("EVAL")) return reply_(++requests_);
    return "+OK\r\n";
  }

  std::function<std::string(int)> reply_;
  std::atomic<int> requests_ = 0;
  int listener_ = -1;
  int port_ = 0;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

// A server that redirects to ever new addresses must not make Tidegate connect to all of them:
// Tidegate would retry each of them again and again and send it the password.
TEST(ScriptedClusterTest, ConnectsToBoundedNumberOfRedirectTargets) {
  for (const std::string word : {"ASK", "MOVED"}) {
    const int slot = SlotOfTag("someone");
    FakeCluster fake([&](int number) {
      return "-" + word + " " + std::to_string(slot) + " 127.1." + std::to_string(number / 250) +
             "." + std::to_string(1 + number % 250) + ":1\r\n";
    });
    RedisStore::Options options = To("redis+cluster://127.0.0.1:" + std::to_string(fake.port()));
    options.redis.deadline = 50ms;
    Node node(options);
    node.WaitUntilReady();
    const Quota quota = Of({.limit = 1'000'000, .period = 1s});
    const auto until = std::chrono::steady_clock::now() + 10s;
    int calls = 0;
    while (calls < 600 && std::chrono::steady_clock::now() < until) {
      (void)node.Apply({"r", "someone", &quota});
      ++calls;
    }
    EXPECT_LE(node.redis_store().redis_stats().nodes.get(), 64U) << word << ", after " << calls;
  }
}

// An error message of Redis may be long and may differ each time.
TEST(ScriptedClusterTest, ShortensErrorRepliesInTheLog) {
  std::mutex mutex;
  std::size_t longest = 0;
  int lines = 0;
  FakeCluster fake([&](int number) {
    const std::string text = "OOM " + std::to_string(number) + std::string(100'000, 'x') + "\n";
    return "!" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  });
  RedisStore::Options options = To("redis+cluster://127.0.0.1:" + std::to_string(fake.port()));
  options.log = [&](RedisStore::Severity, const std::string& what) {
    const std::lock_guard lock(mutex);
    longest = std::max(longest, what.size());
    ++lines;
  };
  Node node(options);
  node.WaitUntilReady();
  const Quota quota = Of({.limit = 1'000'000, .period = 1s});
  for (int i = 0; i < 100; ++i) (void)node.Apply({"r", "someone", &quota});
  const std::lock_guard lock(mutex);
  EXPECT_LE(longest, 1000U);
  EXPECT_LE(lines, 10);
}

}  // namespace
}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
// Requests whose rules count different identities. In a cluster, these identities are stored in
// different slots, and no script can access both. No limit is exceeded, and a request that one rule
// denies costs nothing under the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "redis/cluster_case.hpp"
#include "redis/resharder.hpp"
#include "redis/slots.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kEach = 4;  ///< Number of addresses and number of hosts in the load.

/// Returns host number n, whose slot belongs to master n % 3 when the cluster starts.
std::string HostOf(std::uint32_t n) {
  static const std::vector<std::string> hosts = [] {
    std::vector<std::string> found;
    for (int i = 0; found.size() < 12; ++i) {
      std::string host = "h" + std::to_string(i) + ".example";
      const int third = SlotOfTag("host=" + host) / (RedisCluster::kSlots / 3);
      if (static_cast<std::size_t>(std::min(third, 2)) == found.size() % 3) {
        found.push_back(std::move(host));
      }
    }
    return found;
  }();
  return hosts[n];
}

std::string RequestOf(std::string_view address, std::string_view host, std::string_view path = "/",
                      std::string_view more = {}) {
  std::string body = R"({"request":{"method":"GET","host":")" + std::string(host);
  body.append(R"(","path":")").append(path).append(R"(","client_ip":")").append(address);
  return body.append("\"}").append(more).append("}");
}

class ClusterSpanTest : public ClusterCase {
 protected:
  void Begin(const std::string& rules, std::string_view deadline = "500ms",
             const RedisCluster::Options& options = {.node_timeout_ms = kNoFailoverMs}) {
    cluster_.emplace(options);
    Start(cluster_->url(), rules, 1, deadline);
    for (std::size_t node = 0; node < 3; ++node) {
      ASSERT_TRUE(test::WaitUntil([&] {
        return (*fleet_)[node].Metric("tidegate_fleet_nodes") == 3 && PeekAt(node, 0) &&
               PeekAt(node, 1) && PeekAt(node, 2);
      })) << fleet_->Output();
    }
  }
  /// Returns whether the node's store decides on that host, under rule `b` or under `first_`.
  bool PeekAt(std::size_t node, std::uint32_t host) {
    return Peek(node, first_, HostOf(host)).Member("decided_by") == "store";
  }
  Answer Peek(std::size_t node, const std::string& rule, const std::string& identity) {
    return Ask((*fleet_)[node].api(), "/v1/peek",
               R"({"rule":")" + rule + R"(","identity":")" + identity + "\"}");
  }
  /// Waits until the key has `remaining` units left: a compensation may still be in flight.
  void ExpectRemains(const std::string& rule, const std::string& identity, double remaining) {
    EXPECT_TRUE(test::WaitUntil(
        [&] { return Peek(0, rule, identity).Number("remaining") == remaining; }, 3s))
        << rule << " of " << identity << ": " << Peek(0, rule, identity).body << ", not "
        << remaining;
  }
  [[nodiscard]] static Answer Ask(int port, std::string_view path, std::string_view body) {
    return redis_test::Ask(port, path, body);
  }
  Answer Decide(std::size_t node, std::string_view address, std::string_view host,
                std::string_view path = "/") {
    return (*fleet_)[node].Decide(RequestOf(address, host, path));
  }

  /// Returns a generator of requests with each pair of an address and a host in turn. The key of a
  /// record encodes both.
  static Load::Next Pairs() {
    return [turn = 0U](std::uint32_t, const Record*, LoadRequest& load_request) mutable {
      load_request.key = turn++ % (kEach * kEach);
      load_request.body =
          RequestOf(AddressOf(load_request.key / kEach), HostOf(load_request.key % kEach));
    };
  }
  /// Returns the records with the address alone as key; ByHost with the host alone.
  static Records ByAddress(Records records) {
    for (Record& record : records) record.key /= kEach;
    return records;
  }
  static Records ByHost(Records records) {
    for (Record& record : records) record.key %= kEach;
    return records;
  }
  static testing::AssertionResult HoldsForEach(const Records& records, const Promise& promise) {
    return EachKey(OfStore(records),
                   [&](std::span<const Record> key) { return BucketHolds(key, promise); });
  }
  void ExpectBothHold(const Records& records) const {
    EXPECT_TRUE(HoldsForEach(ByAddress(records), kAddress)) << "an address exceeded its limit";
    EXPECT_TRUE(HoldsForEach(ByHost(records), kHost)) << "a host exceeded its limit";
    const auto time = static_cast<double>(records.back().sent_us - records.front().sent_us) / 1e6;
    const double possible =
        kEach * std::min(kAddress.burst + kAddress.limit * time, kHost.burst + kHost.limit * time);
    std::cout << Admitted(records) << " admitted, of " << possible << " possible\n";
    // Two denied parts may block each other for a moment, so not all of the limit is used, but at
    // least 30 %.
    EXPECT_GE(static_cast<double>(Admitted(records)), 0.3 * possible);
  }

  static constexpr Promise kAddress{100, 1'000'000, 50};
  static constexpr Promise kHost{150, 1'000'000, 30};
  static constexpr const char* kTwoBuckets = R"(rules:
  - { id: a, per: client_ip, limit: 100/s, burst: 50, algorithm: token_bucket }
  - { id: b, per: host, limit: 150/s, burst: 30, algorithm: gcra }
)";
  std::string first_ = "b";
};

TEST_F(ClusterSpanTest, CrossSlotRequestsExceedNeitherLimit) {
  Begin(kTwoBuckets);
  FaultCase::StartLoad(Pairs());
  ASSERT_TRUE(load_->Progress(6000));
  const Records records = Finish();
  ExpectBothHold(records);
  ExpectUnnoticed(records);
}

TEST_F(ClusterSpanTest, CrossSlotRequestsExceedNeitherLimitWhileSlotsMove) {
  Begin(kTwoBuckets);
  FaultCase::StartLoad(Pairs());
  std::vector<int> slots;
  for (std::uint32_t i = 0; i < kEach; ++i) {
    slots.push_back(SlotOf(i));
    slots.push_back(SlotOfTag("host=" + HostOf(i)));
  }
  Resharder resharder(*cluster_, slots);
  ASSERT_TRUE(load_->Progress(6000));
  resharder.Stop();
  if (resharder.disputed()) {
    (void)Finish();
    GTEST_SKIP() << "not judged: the masters dispute a slot";
  }
  EXPECT_EQ(resharder.problem(), "");
  const Records records = Finish();
  ExpectBothHold(records);
  std::cout << resharder.slots_moved() << " slots moved, "
            << records.size() - OfStore(records).size() << " of " << records.size()
            << " decisions were not made by the store\n";
}

TEST_F(ClusterSpanTest, RefundsOtherSlotsWhenOneSlotDenies) {
  std::string rules =
      "rules:\n  - { id: a, per: client_ip, limit: 1/24h, algorithm: fixed_window }\n";
  const std::vector<std::string> algorithms = {"token_bucket", "gcra", "sliding_log",
                                               "sliding_window", "fixed_window"};
  for (const std::string& algorithm : algorithms) {
    rules.append("  - { id: ").append(algorithm).append(", match: { path: /").append(algorithm);
    rules.append(" }, per: host, limit: 20/24h, algorithm: ").append(algorithm).append(" }\n");
  }
  first_ = algorithms[0];
  Begin(rules);
  const std::string& spent = AddressOf(0);
  ASSERT_EQ(Decide(0, spent, HostOf(0)).status, 200);
  // Sends the requests from all nodes at the same time.
  Load load({.ports = fleet_->Apis(), .connections = 4, .most = 1500},
            [&, turn = 0U](std::uint32_t, const Record*, LoadRequest& load_request) mutable {
              load_request.key = turn++ % 5;
              load_request.body = RequestOf(spent, HostOf(1), "/" + algorithms[load_request.key]);
            });
  ASSERT_TRUE(test::WaitUntil([&] { return load.answered() + load.lost() >= 1500; }, 30s));
  for (const Record& record : load.Stop()) ASSERT_EQ(record.status, 429);
  int fresh = 0;
  for (const std::string& algorithm : algorithms) {
    SCOPED_TRACE(algorithm);
    ExpectRemains(algorithm, HostOf(1), 20);
    for (std::size_t i = 0; i < 20; ++i) {
      const std::string address = "172.16.0." + std::to_string(++fresh);
      EXPECT_EQ(Decide(i % 3, address, HostOf(1), "/" + algorithm).status, 200) << i;
    }
    const Answer beyond =
        Decide(0, "172.16.1." + std::to_string(fresh), HostOf(1), "/" + algorithm);
    EXPECT_EQ(beyond.status, 429);
    EXPECT_EQ(beyond.Member("rule"), algorithm);
    // A request that the host denies costs the address nothing.
    ExpectRemains("a", "172.16.1." + std::to_string(fresh), 1);
  }
}

TEST_F(ClusterSpanTest, AppliesFailurePolicyToChargesOnLostMaster) {
  Begin(R"(rules:
  - { id: closed, match: { path: /closed }, per: client_ip, limit: 6/24h, on_failure: closed }
  - { id: open, match: { path: /open }, per: client_ip, limit: 6/24h, on_failure: open }
  - { id: local, match: { path: /local }, per: client_ip, limit: 6/24h, on_failure: local }
  - { id: b, per: host, limit: 20/24h, algorithm: fixed_window, on_failure: closed }
)",
        "50ms", {.replicas = false, .node_timeout_ms = 1000});
  const std::string& gone = AddressOf(0);
  (*cluster_)[0].Kill();
  // Policy `closed`: the request is refused, and the host gets its unit back.
  for (int i = 0; i < 10; ++i) {
    const Answer closed = Decide(0, gone, HostOf(1), "/closed");
    EXPECT_EQ(closed.status, 503) << closed.body;
    EXPECT_EQ(closed.Member("decided_by"), "closed");
    EXPECT_EQ(closed.Member("rule"), "closed");
  }
  ExpectRemains("b", HostOf(1), 20);
  // Policy `open`: the host alone decides.
  for (int i = 0; i < 22; ++i) {
    const Answer open = Decide(0, gone, HostOf(1), "/open");
    EXPECT_EQ(open.status, i < 20 ? 200 : 429) << i << open.body;
    EXPECT_EQ(open.Member("rule"), "b");
    // The node caches the denials of the host.
    EXPECT_EQ(open.Member("decided_by"), i <= 20 ? "store" : "cache") << i;
  }
  // Policy `local`: this node may admit two of the six units, and the host pays only for admitted
  // requests.
  for (int i = 0; i < 5; ++i) {
    const Answer local = Decide(0, gone, HostOf(2), "/local");
    EXPECT_EQ(local.status, i < 2 ? 200 : 429) << i << local.body;
    EXPECT_EQ(local.Member("rule"), "local");
  }
  ExpectRemains("b", HostOf(2), 18);
  // A request that the host denies costs the local bucket nothing.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Decide(1, gone, HostOf(1), "/local").status, 429) << "the host has no units left";
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Decide(1, gone, HostOf(4), "/local").status, i < 2 ? 200 : 429) << i;
  }
  // A host on the lost master is refused by its policy `closed`; the address gets its unit back.
  EXPECT_EQ(Decide(2, AddressOf(1), HostOf(0), "/open").status, 503);
  ExpectRemains("open", AddressOf(1), 6);
  EXPECT_TRUE(fleet_->AllAlive());
}

TEST_F(ClusterSpanTest, TakesLeaseAndTokenAllOrNothing) {
  Begin(R"(rules:
  - { id: c, per: client_ip, limit: 2/30s, algorithm: concurrency }
  - { id: b, per: host, limit: 5/24h, algorithm: token_bucket }
)");
  const std::string& address = AddressOf(0);
  const auto acquire = [&](const std::string& lease, std::uint32_t host) {
    return Ask((*fleet_)[0].api(), "/v1/acquire",
               RequestOf(address, HostOf(host), "/", ",\"lease\":\"" + lease + "\""))
        .status;
  };
  const auto release = [&](const std::string& lease) {
    return Ask((*fleet_)[1].api(), "/v1/release",
               R"({"rule":"c","identity":")" + address + R"(","lease":")" + lease + "\"}")
        .status;
  };
  EXPECT_EQ(acquire("one", 1), 200);
  EXPECT_EQ(acquire("two", 1), 200);
  EXPECT_EQ(acquire("three", 1), 429) << "both leases of the address are held";
  ExpectRemains("b", HostOf(1), 3);
  EXPECT_EQ(release("one"), 200);
  for (const std::string lease : {"four", "five", "six"}) {
    EXPECT_EQ(acquire(lease, 1), 200);
    EXPECT_EQ(release(lease), 200);
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(acquire("seven", 1), 429) << "the host has no units left";
  // The denied requests hold no lease.
  ExpectRemains("c", address, 1);
  EXPECT_EQ(acquire("eight", 2), 200);
  EXPECT_EQ(acquire("nine", 2), 429);
}

TEST_F(ClusterSpanTest, LeasesAndBucketsHoldTheirLimitsUnderLoad) {
  const Promise leases{3, 30'000'000, 0};
  Begin(R"(rules:
  - { id: c, per: client_ip, limit: 3/30s, algorithm: concurrency }
  - { id: b, per: host, limit: 150/s, burst: 30, algorithm: token_bucket }
)");
  FaultCase::StartLoad(
      [](std::uint32_t connection, const Record* last, LoadRequest& load_request) {
        const bool held = last != nullptr && last->op == Op::kAcquire && last->status != 429;
        load_request.op = held ? Op::kRelease : Op::kAcquire;
        load_request.path = held ? "/v1/release" : "/v1/acquire";
        load_request.key = connection % (kEach * kEach);
        load_request.wait = held ? 2ms : 0ms;
        const std::string lease = ",\"lease\":\"c" + std::to_string(connection) + "\"";
        const std::string& address = AddressOf(load_request.key / kEach);
        load_request.body = held ? R"({"rule":"c","identity":")" + address + '"' + lease + "}"
                                 : RequestOf(address, HostOf(load_request.key % kEach), "/", lease);
      },
      1500);
  ASSERT_TRUE(load_->Progress(3000));
  const Records records = Finish();
  EXPECT_TRUE(EachKey(ByAddress(records),
                      [&](std::span<const Record> key) { return LeasesHold(key, leases); }));
  Records acquired;
  for (const Record& record : records) {
    if (record.op == Op::kAcquire) acquired.push_back(record);
  }
  EXPECT_TRUE(HoldsForEach(ByHost(acquired), kHost));
  EXPECT_GT(Admitted(acquired), 100);
  ExpectUnnoticed(records);
  // No lease is lost: after every connection has released, all leases are free.
  for (std::uint32_t i = 0; i < kEach; ++i) {
    for (std::uint32_t connection = 0; connection < 48; ++connection) {
      (void)Ask((*fleet_)[0].api(), "/v1/release",
                R"({"rule":"c","identity":")" + AddressOf(i) + R"(","lease":"c)" +
                    std::to_string(connection) + "\"}");
    }
    ExpectRemains("c", AddressOf(i), 3);
  }
}

}  // namespace
}  // namespace tidegate::redis_test

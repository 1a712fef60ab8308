// SPDX-License-Identifier: Apache-2.0
// Requests whose rules count different identities: on a cluster those live in different slots, and
// no script sees both. Never too many pass, and what one rule refuses costs nothing at the others.
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

constexpr std::uint32_t kEach = 4;  ///< Addresses, and hosts.

/// Host n lives with master n % 3 at first.
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
      })) << fleet_->Said();
    }
  }
  /// Whether the node's store answers for that host, by rule `b` or the first of its kind.
  bool PeekAt(std::size_t node, std::uint32_t host) {
    return Peek(node, first_, HostOf(host)).Member("decided_by") == "store";
  }
  Answer Peek(std::size_t node, const std::string& rule, const std::string& identity) {
    return Ask((*fleet_)[node].api(), "/v1/peek",
               R"({"rule":")" + rule + R"(","identity":")" + identity + "\"}");
  }
  /// What is given back may be on its way for a moment.
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

  /// Every pair of an address and a host, in turn; the key tells both.
  static Load::Next Pairs() {
    return [turn = 0U](std::uint32_t, const Record*, Question& question) mutable {
      question.key = turn++ % (kEach * kEach);
      question.body = RequestOf(AddressOf(question.key / kEach), HostOf(question.key % kEach));
    };
  }
  /// The records by their address alone, or by their host.
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
    EXPECT_TRUE(HoldsForEach(ByAddress(records), kAddress)) << "of an address";
    EXPECT_TRUE(HoldsForEach(ByHost(records), kHost)) << "of a host";
    const auto time = static_cast<double>(records.back().sent_us - records.front().sent_us) / 1e6;
    const double possible =
        kEach * std::min(kAddress.burst + kAddress.limit * time, kHost.burst + kHost.limit * time);
    std::cout << Admitted(records) << " admitted, of " << possible << " possible\n";
    // A neighbour may be denied for a moment, but it is no way to live.
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
  FaultCase::Ask(Pairs());
  ASSERT_TRUE(load_->Progress(6000));
  const Records records = Finish();
  ExpectBothHold(records);
  ExpectUnnoticed(records);
}

TEST_F(ClusterSpanTest, CrossSlotRequestsExceedNeitherLimitWhileSlotsMove) {
  Begin(kTwoBuckets);
  FaultCase::Ask(Pairs());
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
            << " answers were not the store's\n";
}

TEST_F(ClusterSpanTest, CompensatesWhenOnePartDenies) {
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
  // From all nodes at once, again and again.
  Load load({.ports = fleet_->Apis(), .connections = 4, .most = 1500},
            [&, turn = 0U](std::uint32_t, const Record*, Question& question) mutable {
              question.key = turn++ % 5;
              question.body = RequestOf(spent, HostOf(1), "/" + algorithms[question.key]);
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
    // And the other way round: the address has not paid for that.
    ExpectRemains("a", "172.16.1." + std::to_string(fresh), 1);
  }
}

TEST_F(ClusterSpanTest, AnswersLostPartByItsPolicies) {
  Begin(R"(rules:
  - { id: closed, match: { path: /closed }, per: client_ip, limit: 6/24h, on_failure: closed }
  - { id: open, match: { path: /open }, per: client_ip, limit: 6/24h, on_failure: open }
  - { id: local, match: { path: /local }, per: client_ip, limit: 6/24h, on_failure: local }
  - { id: b, per: host, limit: 20/24h, algorithm: fixed_window, on_failure: closed }
)",
        "50ms", {.replicas = false, .node_timeout_ms = 1000});
  const std::string& gone = AddressOf(0);
  (*cluster_)[0].Kill();
  // Closed: refused, and the host gets back what it paid.
  for (int i = 0; i < 10; ++i) {
    const Answer closed = Decide(0, gone, HostOf(1), "/closed");
    EXPECT_EQ(closed.status, 503) << closed.body;
    EXPECT_EQ(closed.Member("decided_by"), "closed");
    EXPECT_EQ(closed.Member("rule"), "closed");
  }
  ExpectRemains("b", HostOf(1), 20);
  // Open: the host alone decides.
  for (int i = 0; i < 22; ++i) {
    const Answer open = Decide(0, gone, HostOf(1), "/open");
    EXPECT_EQ(open.status, i < 20 ? 200 : 429) << i << open.body;
    EXPECT_EQ(open.Member("rule"), "b");
    // What the host denies is known from then on.
    EXPECT_EQ(open.Member("decided_by"), i <= 20 ? "store" : "cache") << i;
  }
  // Local: two of six are this node's, and the host has paid for no more than passed.
  for (int i = 0; i < 5; ++i) {
    const Answer local = Decide(0, gone, HostOf(2), "/local");
    EXPECT_EQ(local.status, i < 2 ? 200 : 429) << i << local.body;
    EXPECT_EQ(local.Member("rule"), "local");
  }
  ExpectRemains("b", HostOf(2), 18);
  // What the host refuses, the local bucket does not pay, either.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Decide(1, gone, HostOf(1), "/local").status, 429) << "the host has nothing left";
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Decide(1, gone, HostOf(4), "/local").status, i < 2 ? 200 : 429) << i;
  }
  // A host that is gone is closed, and an address that lives gets back what it paid.
  EXPECT_EQ(Decide(2, AddressOf(1), HostOf(0), "/open").status, 503);
  ExpectRemains("open", AddressOf(1), 6);
  EXPECT_TRUE(fleet_->AllAlive());
}

TEST_F(ClusterSpanTest, LeaseAndBucketTogether) {
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
  EXPECT_EQ(acquire("three", 1), 429) << "two at a time";
  ExpectRemains("b", HostOf(1), 3);
  EXPECT_EQ(release("one"), 200);
  for (const std::string lease : {"four", "five", "six"}) {
    EXPECT_EQ(acquire(lease, 1), 200);
    EXPECT_EQ(release(lease), 200);
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(acquire("seven", 1), 429) << "the host has nothing left";
  // None of them holds a place.
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
  FaultCase::Ask(
      [](std::uint32_t connection, const Record* last, Question& question) {
        const bool held = last != nullptr && last->op == Op::kAcquire && last->status != 429;
        question.op = held ? Op::kRelease : Op::kAcquire;
        question.path = held ? "/v1/release" : "/v1/acquire";
        question.key = connection % (kEach * kEach);
        question.wait = held ? 2ms : 0ms;
        const std::string lease = ",\"lease\":\"c" + std::to_string(connection) + "\"";
        const std::string& address = AddressOf(question.key / kEach);
        question.body = held ? R"({"rule":"c","identity":")" + address + '"' + lease + "}"
                             : RequestOf(address, HostOf(question.key % kEach), "/", lease);
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
  // No lease is lost: when all have released, all are free.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/fault_case.hpp"
#include "redis/redis_cluster.hpp"

namespace tidegate::redis_test {

/// Three tidegate processes under load on a Redis Cluster of six nodes. The rules count by
/// `client_ip`, whose value is readable in a Redis key, so a test knows which master stores each
/// identity. Each master stores the same number of the kKeys addresses: key k belongs to master k %
/// 3.
class ClusterCase : public FaultCase {
 protected:
  static constexpr std::uint32_t kKeys = 12;
  /// Node timeout for tests without a failover: long enough that a busy machine does not trigger
  /// one.
  static constexpr int kNoFailoverMs = 15'000;

  /// The rules of FaultCase::Rules, counted by client address.
  [[nodiscard]] static std::string Rules();
  /// Returns the client address that stands for a key; SlotOf returns its slot, and HomeOf the node
  /// that owns this slot when the cluster starts.
  [[nodiscard]] static const std::string& AddressOf(std::uint32_t key);
  [[nodiscard]] static int SlotOf(std::uint32_t key);
  [[nodiscard]] static std::size_t HomeOf(std::uint32_t key) { return key % 3; }
  [[nodiscard]] static std::vector<std::uint32_t> KeysOf(std::size_t home);
  [[nodiscard]] static std::vector<int> AllSlots();
  /// Returns a generator that sends requests to `rule` for each address in turn.
  [[nodiscard]] static Load::Next InTurn(std::string rule);

  /// Starts the cluster, the fleet and the load, and waits until the store of every node has
  /// decided on every address.
  void Begin(std::string_view rule = "closed", std::string_view deadline = "20ms",
             const RedisCluster::Options& options = {});
  /// Waits until the store of every node has decided on a request for each of `keys` that was sent
  /// at `since_us` or later.
  void WaitUntilStoreAnswers(const std::vector<std::uint32_t>& keys, std::int64_t since_us);
  /// Checks that each node's store decided on each of `keys` within one second after `since_us`,
  /// not counting the time in which this machine did not run the test. REQUIRES: Finish() was
  /// called.
  void ExpectBack(const Records& records, const std::vector<std::uint32_t>& keys,
                  std::int64_t since_us) const;

  [[nodiscard]] static Records OfKeys(const Records& records, std::size_t home);
  [[nodiscard]] static Records OfOthers(const Records& records, std::size_t home);
  [[nodiscard]] static Records Between(const Records& records, std::int64_t from_us,
                                       std::int64_t to_us);

  std::optional<RedisCluster> cluster_;
  /// The time at which the store of every node had decided on every address.
  std::int64_t begun_us_ = 0;
};

}  // namespace tidegate::redis_test

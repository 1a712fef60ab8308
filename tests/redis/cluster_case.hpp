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

/// Three tidegate processes under load on a Redis Cluster of six nodes. Their rules count by
/// `client_ip`, which can be read in a key, so that a test knows where each identity lives: of
/// kKeys addresses every master has the same number, and key k lives with master k % 3.
class ClusterCase : public FaultCase {
 protected:
  static constexpr std::uint32_t kKeys = 12;
  /// For cases without a failover: a busy machine must not be taken for one.
  static constexpr int kNoFailoverMs = 15'000;

  /// As FaultCase::Rules, by address.
  [[nodiscard]] static std::string Rules();
  /// The address of a key, its slot, and the node that owns it at first.
  [[nodiscard]] static const std::string& AddressOf(std::uint32_t key);
  [[nodiscard]] static int SlotOf(std::uint32_t key);
  [[nodiscard]] static std::size_t HomeOf(std::uint32_t key) { return key % 3; }
  [[nodiscard]] static std::vector<std::uint32_t> KeysOf(std::size_t home);
  [[nodiscard]] static std::vector<int> AllSlots();
  /// Asks `rule` for the addresses in turn.
  [[nodiscard]] static Load::Next InTurn(std::string rule);

  /// The cluster, the fleet, and until every address was answered by the store of every node.
  void Begin(std::string_view rule = "closed", std::string_view deadline = "20ms",
             const RedisCluster::Options& options = {});
  /// Waits until the store of every node has answered for all of these since then.
  void Back(const std::vector<std::uint32_t>& keys, std::int64_t since_us);
  /// After Finish: each node's store answered for each of these within a second of that moment, but
  /// for the time that this machine did not give it.
  void ExpectBack(const Records& records, const std::vector<std::uint32_t>& keys,
                  std::int64_t since_us) const;

  [[nodiscard]] static Records OfKeys(const Records& records, std::size_t home);
  [[nodiscard]] static Records OfOthers(const Records& records, std::size_t home);
  [[nodiscard]] static Records Between(const Records& records, std::int64_t from_us,
                                       std::int64_t to_us);

  std::optional<RedisCluster> cluster_;
  std::int64_t begun_us_ = 0;  ///< When every node had been answered for every address.
};

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "redis/fault_proxy.hpp"
#include "redis/fleet.hpp"
#include "redis/load.hpp"
#include "redis/redis_server.hpp"
#include "support/files.hpp"

namespace tidegate::metrics_test {

/// Several tidegate processes under load, each with a fault of its own, and one without.
///
/// `front` shares a Redis with `slow`, which is 60 ms away from it and has another HMAC key.
/// `front` also has a gateway before an upstream that answers and one that is dead. `orphan` loses
/// its own Redis at once, for good. `small` has a memory store for 1,000 keys, and requires a token
/// from Prometheus. No server listens at `gone`.
class FaultyNodes {
 public:
  FaultyNodes();
  ~FaultyNodes();
  FaultyNodes(const FaultyNodes&) = delete;
  FaultyNodes& operator=(const FaultyNodes&) = delete;

  /// Addresses of the admin ports, `gone` among them.
  [[nodiscard]] std::vector<std::string> Targets() const;
  /// The file with the token that `small` wants.
  [[nodiscard]] std::filesystem::path token() const { return folder_.path() / "token"; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  /// Returns the instance label of a node.
  [[nodiscard]] static std::string Instance(const redis_test::Node& node);

  /// Each of these continues until it `is_seen`, and returns false if it never was.
  using Seen = std::function<bool()>;
  /// Sends more new keys than `small` has room for.
  [[nodiscard]] bool Overflow(const Seen& is_seen);
  /// More at once than `slow` can ask Redis in time.
  [[nodiscard]] bool FillQueue(const Seen& is_seen);
  /// More connections than the gateway takes.
  [[nodiscard]] bool CrowdGateway(const Seen& is_seen);
  /// Writes invalid states, and times far ahead, to keys of the fleet.
  [[nodiscard]] bool Corrupt(const Seen& is_seen);
  [[nodiscard]] bool RefuseReload(const Seen& is_seen);
  [[nodiscard]] bool ExhaustMemory(const Seen& is_seen);
  /// Garbles the replies of Redis to `slow`.
  [[nodiscard]] bool Garble(const Seen& is_seen);
  /// Redis does not answer, then it is gone; afterwards it is back.
  [[nodiscard]] bool Outage(const Seen& is_seen);
  /// Opens connections until `small` has used nearly all descriptors.
  [[nodiscard]] bool TakeDescriptors(const Seen& is_seen);
  /// Makes changes as an operator: bans and so on.
  [[nodiscard]] bool Change(const Seen& is_seen);

  [[nodiscard]] redis_test::Node& front() noexcept { return *front_; }
  [[nodiscard]] redis_test::Node& slow() noexcept { return *slow_; }
  [[nodiscard]] redis_test::Node& orphan() noexcept { return *orphan_; }
  [[nodiscard]] redis_test::Node& small() noexcept { return *small_; }
  [[nodiscard]] redis_test::Node& healthy() noexcept { return *healthy_; }

 private:
  [[nodiscard]] std::unique_ptr<redis_test::Node> Start(
      const std::string& name, const std::string& yaml,
      redis_test::ExtraListeners listeners = {}) const;
  void AskGateway();

  test::TemporaryFolder folder_;
  redis_test::RedisServer redis_;
  redis_test::RedisServer lost_;
  redis_test::FaultProxy proxy_;
  int gone_;
  std::unique_ptr<redis_test::Node> healthy_;
  std::unique_ptr<redis_test::Node> small_;
  std::unique_ptr<redis_test::Node> front_;
  std::unique_ptr<redis_test::Node> slow_;
  std::unique_ptr<redis_test::Node> orphan_;
  std::unique_ptr<redis_test::Load> busy_;
  std::unique_ptr<redis_test::Load> calm_;
  int fresh_ = 0;  ///< Keys that were made up so far.
  std::atomic<bool> stop_{false};
  std::thread gateway_clients_;
};

}  // namespace tidegate::metrics_test

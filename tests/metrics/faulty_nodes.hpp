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

/// Several tidegate processes under load: each has a different fault, except one. `front` shares a
/// Redis with `slow`. `front` also has a gateway with one upstream that responds and one that is
/// dead. `slow` reaches Redis with a delay of 60 ms and has another HMAC key. `orphan` loses its
/// own Redis at the start, permanently. `small` has a memory store for 1,000 keys, and requires a
/// token from Prometheus. No server listens at `gone`.
class FaultyNodes {
 public:
  FaultyNodes();
  ~FaultyNodes();
  FaultyNodes(const FaultyNodes&) = delete;
  FaultyNodes& operator=(const FaultyNodes&) = delete;

  /// Returns the addresses of the admin ports, including that of `gone`.
  [[nodiscard]] std::vector<std::string> Targets() const;
  /// Returns the file with the token that `small` requires.
  [[nodiscard]] std::filesystem::path token() const { return folder_.path() / "token"; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  /// Returns the instance label of a node.
  [[nodiscard]] static std::string Instance(const redis_test::Node& node);

  /// Each of the following functions causes a fault until `is_seen` returns true. Returns false on
  /// timeout.
  using Seen = std::function<bool()>;
  /// Sends more new keys than `small` has room for.
  [[nodiscard]] bool Overflow(const Seen& is_seen);
  /// Sends more requests at once than `slow` can send to Redis in time.
  [[nodiscard]] bool FillQueue(const Seen& is_seen);
  /// Opens more connections than the gateway accepts.
  [[nodiscard]] bool OverloadGateway(const Seen& is_seen);
  /// Writes invalid states, and times far in the future, to keys of the fleet.
  [[nodiscard]] bool Corrupt(const Seen& is_seen);
  [[nodiscard]] bool RefuseReload(const Seen& is_seen);
  [[nodiscard]] bool ExhaustMemory(const Seen& is_seen);
  /// Corrupts the replies of Redis to `slow`.
  [[nodiscard]] bool CorruptReplies(const Seen& is_seen);
  /// Redis hangs, then stops, and finally runs again.
  [[nodiscard]] bool Outage(const Seen& is_seen);
  /// Opens connections until `small` has used nearly all its file descriptors.
  [[nodiscard]] bool TakeDescriptors(const Seen& is_seen);
  /// Makes changes like an operator, such as bans.
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
  int fresh_ = 0;  ///< Number of keys that were invented so far.
  std::atomic<bool> stop_{false};
  std::thread gateway_clients_;
};

}  // namespace tidegate::metrics_test

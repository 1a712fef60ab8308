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

namespace tidegate::metrics_test {

/// Several tidegate processes under load, each with a misfortune of its own; and one that is well.
///
/// `front` shares a Redis with `slow`, whose way there takes 60 ms and whose HMAC key is another.
/// `front` also has a gateway before an upstream that answers and one that is dead. `orphan` loses
/// its own Redis at once, for good. `small` has a memory store for 1,000 keys, and asks Prometheus
/// for a token. Where `gone` should be, nobody listens.
class Estate {
 public:
  Estate();
  ~Estate();
  Estate(const Estate&) = delete;
  Estate& operator=(const Estate&) = delete;

  /// Of the admin ports, `gone` among them.
  [[nodiscard]] std::vector<std::string> Targets() const;
  /// The file with the token that `small` wants.
  [[nodiscard]] std::filesystem::path token() const { return folder_.path() / "token"; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  /// What Prometheus calls a node.
  [[nodiscard]] static std::string Instance(const redis_test::Node& node);

  /// Every one of these goes on until it `is_seen`; false: it never was.
  using Seen = std::function<bool()>;
  /// So many new keys that `small` has no room for them.
  [[nodiscard]] bool Overflow(const Seen& is_seen);
  /// More at once than `slow` can ask Redis in time.
  [[nodiscard]] bool FillQueue(const Seen& is_seen);
  /// More connections than the gateway takes.
  [[nodiscard]] bool CrowdGateway(const Seen& is_seen);
  /// Somebody writes to our keys: nonsense, and times far ahead.
  [[nodiscard]] bool Corrupt(const Seen& is_seen);
  [[nodiscard]] bool RefuseReload(const Seen& is_seen);
  [[nodiscard]] bool ExhaustMemory(const Seen& is_seen);
  /// What `slow` hears of Redis is garbled.
  [[nodiscard]] bool Garble(const Seen& is_seen);
  /// Redis does not answer, then it is gone; afterwards it is back.
  [[nodiscard]] bool Outage(const Seen& is_seen);
  /// So few descriptors that `small` has used nearly all.
  [[nodiscard]] bool TakeDescriptors(const Seen& is_seen);
  /// What operators do: bans and so on.
  [[nodiscard]] bool Change(const Seen& is_seen);

  [[nodiscard]] redis_test::Node& front() noexcept { return *front_; }
  [[nodiscard]] redis_test::Node& slow() noexcept { return *slow_; }
  [[nodiscard]] redis_test::Node& orphan() noexcept { return *orphan_; }
  [[nodiscard]] redis_test::Node& small() noexcept { return *small_; }
  [[nodiscard]] redis_test::Node& well() noexcept { return *well_; }

 private:
  [[nodiscard]] std::unique_ptr<redis_test::Node> Start(const std::string& name,
                                                        const std::string& yaml,
                                                        redis_test::MoreDoors doors = {}) const;
  void AskGateway();

  redis_test::TemporaryFolder folder_;
  redis_test::RedisServer redis_;
  redis_test::RedisServer lost_;
  redis_test::FaultProxy proxy_;
  int gone_;
  std::unique_ptr<redis_test::Node> well_;
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

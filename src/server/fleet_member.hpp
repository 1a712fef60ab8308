// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/config.hpp"
#include "limiter/redis_store.hpp"
#include "net/reactor.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/redis/redis_overrides.hpp"
#include "store/shared_overrides.hpp"

namespace tidegate {

/// The number of digits of a new HMAC key, which has 256 bits.
inline constexpr std::size_t kKeyDigits = 64;

/// This node as a member of the fleet of nodes that share one Redis: its heartbeat, the register of
/// overrides, and the HMAC key with which all nodes hash identities.
///
/// If the configuration has no HMAC key, the nodes agree on one through Redis. Until this node
/// knows that key, its stores are on hold, because it would hash identities differently from the
/// fleet.
class FleetMember {
 public:
  struct Hooks {
    /// Called when the fleet has another HMAC key. Runs on a thread of its own, because it compiles
    /// all rules. Returns true if this node now uses `key`.
    std::function<bool(const std::string& key)> adopt_key;
    /// Called on the first reactor's thread when this node knows the fleet's key.
    std::function<void()> on_key_known;
    /// Called on the first reactor's thread when overrides changed.
    std::function<void(const SharedOverrides::Delta&)> on_overrides;
  };
  /// Waits at most one second for Redis. Returns an Error if the TLS files are invalid.
  [[nodiscard]] static Result<std::unique_ptr<FleetMember>> Make(const Config& config,
                                                                 std::string node, Hooks hooks);

  [[nodiscard]] const std::string& hmac_key() const noexcept { return key_; }
  [[nodiscard]] bool knows_key() const noexcept { return knows_key_; }
  [[nodiscard]] const redis::Fleet& fleet() const noexcept { return fleet_; }
  /// Returns how often this node restored overrides that Redis had lost. Must be called on the
  /// first reactor's thread.
  [[nodiscard]] std::uint64_t restored() const noexcept { return restored_; }
  [[nodiscard]] SharedOverrides& shared_overrides() noexcept { return *register_; }

  /// Returns the options for the redis_store of the next Join. All stores use the same Redis, so
  /// only the first logs its problems, and only the first is notified of changed overrides.
  [[nodiscard]] RedisStore::Options RedisStoreOptions();
  /// Adds a reactor's redis_store. Heartbeat and register use the first one. Call it before Start.
  void Join(net::Reactor& reactor, RedisStore& redis_store);
  /// Connects all stores. The reactors need not run yet.
  void Start();
  /// Removes this node from the fleet's list in Redis. Call it on the first reactor's thread.
  void Leave();

 private:
  struct Member {
    net::Reactor& reactor;
    RedisStore& redis_store;
  };

  FleetMember(std::string node, bool agrees, Hooks hooks)
      : node_(std::move(node)), agrees_(agrees), hooks_(std::move(hooks)) {}
  void AgreeOnKey();
  void AdoptKey(const std::string& key);
  void ReleaseGuards();

  const std::string node_;
  const bool agrees_;  ///< The HMAC key comes from Redis, not from the configuration.
  const Hooks hooks_;
  redis::Client::Options redis_;
  redis::Fleet fleet_;
  std::string key_;
  std::atomic<bool> knows_key_{true};
  std::vector<Member> members_;
  std::unique_ptr<redis::RedisOverrides> register_;
  std::unique_ptr<redis::Heartbeat> heartbeat_;
  std::uint64_t restored_ = 0;
  /// True while the rules are compiled with another HMAC key; meanwhile the stores stay on hold.
  std::atomic<bool> adopting_key_{false};
  std::jthread adopting_;
};

}  // namespace tidegate

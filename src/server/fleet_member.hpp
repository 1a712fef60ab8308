// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "limiter/guard.hpp"
#include "net/reactor.hpp"
#include "rules/config.hpp"
#include "store/fleet_register.hpp"
#include "store/redis/heartbeat.hpp"
#include "store/redis/redis_register.hpp"

namespace tidegate {

/// 256 random bits, printable: a new HMAC key, or a name that no other node has.
[[nodiscard]] std::string RandomKey();

/// This node as a member of the fleet that shares one Redis: its heartbeat, the register of
/// overrides, and the HMAC key that all nodes hash identities with.
///
/// If the configuration has no key, the nodes agree on one through Redis. Until this node knows it,
/// its guards are on hold: keys with other names would be buckets of their own.
class FleetMember {
 public:
  struct Hooks {
    /// The fleet has another HMAC key. Called on a thread of its own, since it compiles all rules;
    /// returns whether the key is in use now.
    std::function<bool(const std::string& key)> adopt_key;
    /// This node knows the fleet's key. On the first reactor's thread, as the next.
    std::function<void()> on_key_known;
    std::function<void(const FleetRegister::Delta&)> on_overrides;
  };
  /// Waits for Redis to agree on a key, one second at most. An Error: the TLS files are bad.
  [[nodiscard]] static Result<std::unique_ptr<FleetMember>> Make(const Config& config,
                                                                 std::string node, Hooks hooks);
  ~FleetMember();

  [[nodiscard]] const std::string& hmac_key() const noexcept { return key_; }
  [[nodiscard]] bool knows_key() const noexcept { return knows_key_; }
  [[nodiscard]] const redis::Fleet& fleet() const noexcept { return fleet_; }
  /// Times that Redis had lost the overrides and this node restored them. First reactor only.
  [[nodiscard]] std::uint64_t restored() const noexcept { return restored_; }
  [[nodiscard]] FleetRegister& fleet_register() noexcept { return *register_; }

  /// The options of the next guard to Join. All reactors meet the same Redis, so only the first
  /// logs, and only the first hears of changed overrides.
  [[nodiscard]] Guard::Options GuardOptions();
  /// Adds a reactor's guard, before Start. The first one carries heartbeat and register.
  void Join(net::Reactor& reactor, Guard& guard);
  /// Connects all guards. The reactors may not run yet.
  void Start();
  /// Tells Redis that this node is leaving. On the first reactor's thread.
  void Leave();

 private:
  struct Member {
    net::Reactor& reactor;
    Guard& guard;
  };

  FleetMember(std::string node, bool agrees, Hooks hooks)
      : node_(std::move(node)), agrees_(agrees), hooks_(std::move(hooks)) {}
  void AgreeOnKey();
  void AdoptKey(const std::string& key);
  void ReleaseGuards();

  const std::string node_;
  const bool agrees_;  ///< The key comes from Redis, not from the configuration.
  const Hooks hooks_;
  redis::Client::Options redis_;
  redis::Fleet fleet_;
  std::string key_;
  std::atomic<bool> knows_key_{true};
  std::vector<Member> members_;
  std::unique_ptr<redis::RedisRegister> register_;
  std::unique_ptr<redis::Heartbeat> heartbeat_;
  std::uint64_t restored_ = 0;
  std::thread adopting_;
};

}  // namespace tidegate

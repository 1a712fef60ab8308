// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "admin/reload.hpp"
#include "decision/pipeline.hpp"
#include "limiter/stored_state.hpp"
#include "store/fleet_register.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// The actions of operators. Each has a counter.
enum class AdminAction : std::uint8_t {
  kReset,
  kGrant,
  kRefund,
  kBan,
  kAllow,
  kOverride,
  kLift,
  kReload,
};
inline constexpr std::size_t kAdminActions = 8;
[[nodiscard]] std::string_view Name(AdminAction action) noexcept;

/// Actions carried out since the start, by AdminAction. Counted on one thread, read on any.
using AdminCounters = std::array<std::atomic<std::uint64_t>, kAdminActions>;

/// The state that all requests of the admin API share. Must be used on the first reactor's thread.
struct AdminContext {
  DecisionPipeline& pipeline;
  FleetRegister& fleet_register;
  std::string node;  ///< This node's name in the fleet.
  AdminCounters counters{};
  /// Returns the name of a charge's key in Redis; empty if the key is not in Redis.
  std::function<std::string(const Charge&)> stored_as = {};
  /// Reads the state that the store holds for a charge's key, now or later.
  std::function<void(const Charge&, std::function<void(Result<StoredState>)>)> read_stored = {};
  /// Whether this node knows the fleet's HMAC key. Without it no identity can be hashed.
  bool has_fleet_key = true;
  /// Returns the last problem with the store, for people; empty if the store works.
  std::function<std::string()> store_problem = [] { return std::string(); };
  /// Handles reload requests. Empty: there is no configuration file to reload.
  Reloader reload = {};

  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *pipeline.snapshot(); }
  void Count(AdminAction action) noexcept {
    auto& counter = counters[static_cast<std::size_t>(action)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

}  // namespace tidegate

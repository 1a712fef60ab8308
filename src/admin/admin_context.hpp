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

/// What operators can do, each with a counter.
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

/// Changes that were carried out since the start. Counted on one thread, read on any.
using AdminCounters = std::array<std::atomic<std::uint64_t>, kAdminActions>;

/// What the admin API works with. Belongs to the first reactor.
struct AdminContext {
  DecisionPipeline& pipeline;
  FleetRegister& fleet_register;
  std::string node;  ///< This node's name in the fleet.
  AdminCounters counters{};
  /// The name of a charge's key in the store; empty: it has none that people could look up.
  std::function<std::string(const Charge&)> stored_as = {};
  std::function<void(const Charge&, std::function<void(Result<StoredState>)>)> read_stored = {};
  /// Whether this node knows the fleet's HMAC key. Until then it cannot name any key.
  bool has_fleet_key = true;
  /// The last problem with the store, for people; empty: none since it was last reached.
  std::function<std::string()> store_problem = [] { return std::string(); };
  /// Empty: there is no configuration file to read again.
  Reloader reload = {};

  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *pipeline.snapshot(); }
  void Count(AdminAction action) noexcept {
    auto& counter = counters[static_cast<std::size_t>(action)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

}  // namespace tidegate

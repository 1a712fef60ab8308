// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "admin/reload.hpp"
#include "frontends/override_desk.hpp"
#include "frontends/policy.hpp"
#include "store/fleet_register.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

class Routing;

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

/// What is stored for a key, as it stands there.
struct StoredState {
  bool tracked = false;
  std::vector<Inspection::Field> fields;
};

/// What everything that operators ask is answered from. Of the first reactor.
struct AdminDesk {
  AsyncStore& store;
  FleetRegister& fleet_register;
  const OverrideDesk& overrides;
  std::shared_ptr<const Policy> policy;
  std::string node;  ///< This one's name among others.
  AdminCounters counters{};
  /// What the store knows a key by; empty: nothing that people could look for.
  std::function<std::string(const Charge&)> stored_as = {};
  std::function<void(const Charge&, std::function<void(Result<StoredState>)>)> stored = {};
  /// Whether what keys are called is agreed on with the fleet: until then nothing can be said about
  /// one.
  bool named = true;
  /// What went wrong with the store last, for people; empty: nothing, since it was last reached.
  std::function<std::string()> trouble = [] { return std::string(); };
  /// The gateway's routes; nullptr: there is none.
  std::shared_ptr<const Routing> routing = {};
  /// Nothing: there is no file to read.
  Reloader reload = {};
  /// An identity as strangers may see it.
  std::function<std::string(std::string_view)> shown_as = {};
};

}  // namespace tidegate

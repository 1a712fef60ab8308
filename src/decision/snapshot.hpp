// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/smart_ptr/local_shared_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "net/tls_server.hpp"
#include "rules/rule_set.hpp"
#include "telemetry/slot_table.hpp"

namespace tidegate {

struct AccessControl;  // frontends/access_policy.hpp
class Routing;         // gateway/routing.hpp

/// The four places where a server listens.
enum class ListenerId : std::uint8_t { kApi, kAdmin, kGateway, kResp };
inline constexpr std::size_t kListeners = 4;

/// One compiled configuration file, immutable and thread-safe. A reload publishes a new snapshot to
/// every reactor; calls in progress keep the snapshot they began with.
struct Snapshot {
  std::shared_ptr<const RuleSet> rules;
  std::vector<std::uint32_t> slots;  ///< The counter slot of each rule, by rule number.
  Config::Responses responses;
  Config::Api api;
  Config::Resp resp;
  Config::Metrics::KeyNames key_names = {};  ///< The form in which hot keys are shown.
  std::shared_ptr<const AccessControl> access;
  std::shared_ptr<const Routing> routes;  ///< nullptr if there is no gateway.
  /// The TLS settings, indexed by ListenerId; nullptr if the listener has no TLS.
  using Tls = std::array<std::shared_ptr<const net::TlsServer>, kListeners>;
  Tls tls;

  /// Returns the counter slot of `rule`; a `rule` of nullptr means an inline quota.
  [[nodiscard]] std::uint32_t SlotOf(const Rule* rule) const noexcept {
    return rule == nullptr ? RuleSlots::kOther : slots[rule->number];
  }
};

/// A counted reference to a snapshot for use on one reactor only: copies need no atomic operation.
using SnapshotRef = boost::local_shared_ptr<const Snapshot>;
[[nodiscard]] inline SnapshotRef MakeSnapshotRef(std::shared_ptr<const Snapshot> snapshot) {
  const Snapshot* const raw = snapshot.get();
  return {raw, [shared = std::move(snapshot)](const Snapshot*) {}};
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.hpp"
#include "config/config.hpp"
#include "decision/snapshot.hpp"
#include "telemetry/slot_table.hpp"

namespace tidegate {

/// A section of `listen` in the configuration.
struct ListenSection {
  std::string_view name;
  ListenSpec Config::Listen::*spec;
};
/// The section of each listener, indexed by ListenerId.
inline constexpr std::array<ListenSection, kListeners> kListenSections = {
    {{"api", &Config::Listen::api},
     {"admin", &Config::Listen::admin},
     {"gateway", &Config::Listen::gateway},
     {"resp", &Config::Listen::resp}}};

/// Compiles configurations to Snapshots for one server, and keeps the state that outlives reloads:
/// the slots of counters, the upstreams, the HMAC key. Not thread-safe, except for the names of
/// slots, which may be read at any time.
class SnapshotCompiler {
 public:
  /// `started_with` is the configuration that listeners and store were made from. `hmac_key` hashes
  /// identities if the configuration has no key.
  SnapshotCompiler(const Config& started_with, std::string hmac_key)
      : started_with_(started_with), in_force_(started_with), hmac_key_(std::move(hmac_key)) {}

  /// Compiles `config` and puts it in force. If it has errors, adds problems of severity kError,
  /// changes nothing and returns nullptr. Waits at most two seconds for name servers.
  [[nodiscard]] std::shared_ptr<const Snapshot> Compile(const Config& config, Problems& problems);
  /// Compiles the configuration in force again, with another HMAC key.
  [[nodiscard]] std::shared_ptr<const Snapshot> CompileWithKey(const std::string& hmac_key);
  /// Returns the last snapshot that was compiled; nullptr before the first.
  [[nodiscard]] const std::shared_ptr<const Snapshot>& current() const noexcept { return current_; }

  /// Returns the sections of `config` that take effect only after a restart.
  [[nodiscard]] std::vector<std::string> NeedsRestart(const Config& config) const;
  /// Compiles the rules of `config` only to find their problems.
  static void Check(const Config& config, Problems& problems);

  [[nodiscard]] const RuleSlots& rule_slots() const noexcept { return rule_slots_; }
  [[nodiscard]] const RuleSlots& route_slots() const noexcept { return route_slots_; }
  [[nodiscard]] const RuleSlots& upstream_slots() const noexcept { return upstream_slots_; }

 private:
  [[nodiscard]] std::shared_ptr<Snapshot> CompileRules(const Config& config, Problems& problems);
  [[nodiscard]] std::optional<Snapshot::Tls> CompileTls(const Config& config,
                                                        Problems& problems) const;
  /// Returns true if every listener that requires authentication would still require it.
  [[nodiscard]] bool KeepsAuthentication(const Config& config, const Snapshot& snapshot,
                                         Problems& problems) const;

  const Config started_with_;
  Config in_force_;
  std::string hmac_key_;
  std::shared_ptr<const Snapshot> current_;
  RuleSlots rule_slots_;
  RuleSlots route_slots_;
  RuleSlots upstream_slots_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rules/override_table.hpp"
#include "store/fleet_register.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// Turns the changes that a FleetRegister reports into override tables.
///
/// Owns the current table. Parses only the entries that a change names; see OverrideTable for the
/// cost of a new table. No I/O. Not thread-safe; the tables are.
class LiveOverrides {
 public:
  struct Update {
    std::shared_ptr<const OverrideTable> table;  ///< The table after the change.
    /// Keys whose override was added, replaced or removed: denials cached for them must be dropped.
    std::vector<OverrideKey> keys;
    /// Changed entries that are not a valid override, for example because a later version of
    /// Tidegate wrote them. Their keys have no override.
    std::size_t invalid = 0;
  };

  /// REQUIRES: `clock` outlives this and all tables made here.
  explicit LiveOverrides(const Clock& clock);

  /// Applies a change and returns the new current table.
  [[nodiscard]] Update Apply(const FleetRegister::Delta& delta);

  [[nodiscard]] const std::shared_ptr<const OverrideTable>& table() const noexcept {
    return table_;
  }

 private:
  /// Translates all ends again if the register's clock was stepped.
  void FollowClock(std::int64_t now_ms, Time now);

  const Clock& clock_;
  std::shared_ptr<const OverrideTable> table_;
  Micros offset_{0};  ///< From the node's clock to the register's, at the last change.
};

}  // namespace tidegate

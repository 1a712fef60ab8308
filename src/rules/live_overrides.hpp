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
/// Owns the current table. Parses only the entries that a change names; OverrideTable says what a
/// new table costs. No I/O. Not thread-safe; the tables are.
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
  const Clock& clock_;
  std::shared_ptr<const OverrideTable> table_;
};

}  // namespace tidegate

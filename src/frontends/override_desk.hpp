// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "rules/override_table.hpp"

namespace tidegate {

/// Where one reactor's doors find the overrides that are in force.
class OverrideDesk {
 public:
  /// Never nullptr.
  explicit OverrideDesk(std::shared_ptr<const OverrideTable> table) : table_(std::move(table)) {}

  [[nodiscard]] const std::shared_ptr<const OverrideTable>& table() const noexcept {
    return table_;
  }
  /// For all questions from now on.
  void Use(std::shared_ptr<const OverrideTable> table) noexcept { table_ = std::move(table); }

 private:
  std::shared_ptr<const OverrideTable> table_;
};

}  // namespace tidegate

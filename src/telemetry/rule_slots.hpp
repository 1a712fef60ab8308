// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tidegate {

/// Numbers for rules' names that stay the same over reloads, so that counters go on. Thread-safe.
class RuleSlots {
 public:
  static constexpr std::uint32_t kMost = 1u << 16;
  /// Shared by inline quotas, and by all rules once kMost names have been seen.
  static constexpr std::uint32_t kOther = 0;

  [[nodiscard]] std::uint32_t SlotOf(std::string_view rule);
  /// The names by their slots; slot 0 is `(other)`.
  [[nodiscard]] std::vector<std::string> Names() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> slots_;
  std::vector<std::string> names_{"(other)"};
};

}  // namespace tidegate

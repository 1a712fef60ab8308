// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/override.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// All overrides that are known at one moment: immutable, thread-safe, replaced as a whole. Those
/// with an end are found until then and not a microsecond longer, whether the table has been
/// replaced by then or not.
class OverrideTable : public std::enable_shared_from_this<OverrideTable> {
 public:
  struct Entry {
    Override what;
    std::optional<Quota> quota;              ///< Of Override::Kind::kQuota.
    std::int64_t since_ms = 0;               ///< By the clock of whoever keeps it, as the next.
    std::optional<std::int64_t> expires_ms;  ///< Nothing: it stays until it is lifted.
    Time until = Time::max();                ///< The same end, by the table's own clock.
  };

  /// The clock outlives the table.
  [[nodiscard]] static std::shared_ptr<const OverrideTable> Make(std::vector<Entry> entries,
                                                                 const Clock& clock);
  OverrideTable(const OverrideTable&) = delete;
  OverrideTable& operator=(const OverrideTable&) = delete;

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  /// nullptr: nothing was decided about that key, or not any more.
  [[nodiscard]] const Entry* Find(std::string_view rule, std::string_view identity) const noexcept;
  /// How long it still counts; nothing: for good.
  [[nodiscard]] std::optional<Micros> Left(const Entry& entry) const noexcept;

 private:
  struct Key {
    std::string_view rule;
    std::string_view identity;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  OverrideTable(std::vector<Entry> entries, const Clock& clock);

  const std::vector<Entry> entries_;
  const Clock& clock_;
  std::unordered_map<Key, const Entry*, KeyHash> by_key_;
};

/// The overrides that count for one question.
struct OverrideView {
  const OverrideTable* table = nullptr;  ///< nullptr: none.
  /// What is not a request to pass, a refund, say, is carried out whoever is banned; how much the
  /// key may hold counts for it too.
  bool quotas_only = false;

  [[nodiscard]] const OverrideTable::Entry* Find(std::string_view rule,
                                                 std::string_view identity) const noexcept {
    if (table == nullptr || table->empty()) [[likely]]
      return nullptr;
    return table->Find(rule, identity);
  }
};

}  // namespace tidegate

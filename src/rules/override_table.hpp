// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/override.hpp"
#include "tidegate/clock.hpp"

namespace tidegate {

/// The overrides known at one moment, by rule and identity. Immutable and thread-safe.
///
/// A table consists of a base, which it shares with its predecessors, and a delta: the changes
/// since that base. With() returns a new table and leaves this one as it is. Entries that a change
/// does not name keep their address for as long as any table holds them.
///
/// Find returns an entry that has an end until exactly that moment, even if no newer table has
/// removed it.
class OverrideTable : public std::enable_shared_from_this<OverrideTable> {
 public:
  struct Entry {
    Override what;
    std::optional<Quota> quota;              ///< Override::Kind::kQuota only.
    std::int64_t since_ms = 0;               ///< By the register's clock, as is expires_ms.
    std::optional<std::int64_t> expires_ms;  ///< Empty: the override stays until it is lifted.
    Time until = Time::max();                ///< The same end by the table's clock.
  };
  /// Removals apply before additions: a key in both lists ends up with its new entry.
  struct Changes {
    std::vector<Entry> put;            ///< Added, or replacing the entry of the same key.
    std::vector<OverrideKey> removed;  ///< Keys without an entry are ignored.
  };

  /// Returns a table of version 1. Of several entries with the same key the last one counts.
  /// REQUIRES: `clock` outlives the table and all tables made from it.
  [[nodiscard]] static std::shared_ptr<const OverrideTable> Make(std::vector<Entry> entries,
                                                                 const Clock& clock);
  OverrideTable(const OverrideTable&) = delete;
  OverrideTable& operator=(const OverrideTable&) = delete;

  /// Returns the table after `changes`, with the next version, or this table if they change
  /// nothing. The cost grows with the changes and the square root of size(), not with size().
  [[nodiscard]] std::shared_ptr<const OverrideTable> With(Changes changes) const;

  /// True if the table holds no entry. Every decision calls this: one comparison.
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Number of entries, including those that have ended and are not removed yet.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// Returns the entry in force for a key; nullptr: there is none, or it has ended.
  [[nodiscard]] const Entry* Find(std::string_view rule, std::string_view identity) const noexcept;
  /// Returns how long an entry stays in force: zero if it has ended, empty if it has no end.
  [[nodiscard]] std::optional<Micros> Left(const Entry& entry) const noexcept;

  /// Calls `visit(const Entry&)` for every entry, ended ones included, in no particular order.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [key, entry] : *base_) {
      if (!delta_.contains(key)) visit(*entry);
    }
    for (const auto& [key, entry] : delta_) {
      if (entry != nullptr) visit(*entry);
    }
  }
  /// Returns every entry, ended ones included, ordered by rule and identity. The pointers are valid
  /// while the table lives.
  [[nodiscard]] std::vector<const Entry*> Sorted() const;

  /// True if both tables use the same base. For tests.
  [[nodiscard]] bool SharesBaseWith(const OverrideTable& other) const noexcept {
    return base_ == other.base_;
  }

 private:
  /// Points into an entry of the same table.
  struct Key {
    std::string_view rule;
    std::string_view identity;
    std::size_t hash;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept { return key.hash; }
  };
  /// In a delta nullptr marks a key of the base that was removed; its Key points into the base.
  using Index = std::unordered_map<Key, std::shared_ptr<const Entry>, KeyHash>;

  OverrideTable(std::shared_ptr<const Index> base, Index delta, std::size_t size,
                std::uint64_t version, const Clock& clock) noexcept;

  [[nodiscard]] static Key MakeKey(std::string_view rule, std::string_view identity) noexcept;
  static void Put(Index& index, std::shared_ptr<const Entry> entry);
  [[nodiscard]] static std::size_t MaxDelta(std::size_t base) noexcept;

  const std::shared_ptr<const Index> base_;
  const Index delta_;
  const std::size_t size_;
  const std::uint64_t version_;
  const Clock& clock_;
};

/// The overrides that apply to one question.
struct OverrideView {
  const OverrideTable* table = nullptr;  ///< nullptr: none.
  /// Only overrides of quotas apply. For operations such as a refund, which are carried out for
  /// banned keys too.
  bool quotas_only = false;

  [[nodiscard]] const OverrideTable::Entry* Find(std::string_view rule,
                                                 std::string_view identity) const noexcept {
    if (table == nullptr || table->empty()) [[likely]]
      return nullptr;
    return table->Find(rule, identity);
  }
};

}  // namespace tidegate

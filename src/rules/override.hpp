// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/limit_text.hpp"
#include "store/shared_overrides.hpp"
#include "tidegate/clock.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The key that an override applies to.
struct OverrideKey {
  std::string rule;
  std::string identity;  ///< In the form that Identifier writes.
  friend bool operator==(const OverrideKey&, const OverrideKey&) = default;
};

/// An operator's decision about one key, which is not in the configuration: the key is banned,
/// allowed without being counted, or has a quota of its own.
struct Override {
  enum class Kind : std::uint8_t { kBan, kAllow, kQuota };

  Kind kind = Kind::kBan;
  std::string rule;
  std::string identity;  ///< In the form that Identifier writes.
  /// kQuota: the rule's algorithm at that time. A rule that has another now ignores the override.
  Algorithm algorithm = Algorithm::kTokenBucket;
  LimitText limit;         ///< The limit of kQuota.
  std::int64_t burst = 0;  ///< The burst of kQuota; 0: the limit's count.
  std::string reason;      ///< The reason, for people to read.
  std::string by;          ///< The operator who made the override.

  /// Returns the key's name in a store. It is unique, because neither part contains a space.
  [[nodiscard]] static std::string Field(std::string_view rule, std::string_view identity);
  /// Returns the key from which Field() made `field`; nothing if `field` is not of that form.
  [[nodiscard]] static std::optional<OverrideKey> ParseField(std::string_view field);
  /// Returns the override as JSON that people can read.
  [[nodiscard]] std::string Text() const;
  /// Parses what Text() returned. Returns nothing if `text` is not a valid override.
  [[nodiscard]] static std::optional<Override> Parse(std::string_view text);
  /// Returns the quota of a kQuota override; an Error if its values form no valid quota.
  [[nodiscard]] Result<Quota> MakeQuota() const;

  friend bool operator==(const Override&, const Override&) = default;
};
inline constexpr int kOverrideKinds = 3;

/// Returns `ban`, `allow` or `quota`.
[[nodiscard]] std::string_view Name(Override::Kind kind) noexcept;

/// The overrides known at one moment, by rule and identity. Immutable and thread-safe.
///
/// A table consists of a base, which it shares with its predecessors, and a delta: the changes
/// since that base. With() returns a new table; entries that a change does not name keep their
/// address for as long as any table holds them. Find() returns an entry up to its end time exactly.
class OverrideTable : public std::enable_shared_from_this<OverrideTable> {
 public:
  struct Entry {
    Override what;
    std::optional<Quota> quota;              ///< Set for Override::Kind::kQuota only.
    std::int64_t since_ms = 0;               ///< Start by the register's clock, as is expires_ms.
    std::optional<std::int64_t> expires_ms;  ///< Empty: the override stays until it is lifted.
    Time until = Time::max();                ///< The time `expires_ms`, by the table's clock.
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

  /// Returns true if the table holds no entry. Every decision calls it: one comparison.
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Returns the number of entries, including those that have ended and are not removed yet.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// Returns the entry in force for a key; nullptr if there is none or it has ended.
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
  /// Returns every entry of this table, ended ones included, ordered by rule and identity.
  [[nodiscard]] std::vector<const Entry*> Sorted() const;

  /// Returns true if both tables use the same base. For tests.
  [[nodiscard]] bool SharesBaseWith(const OverrideTable& other) const noexcept {
    return base_ == other.base_;
  }

 private:
  /// The views point into an entry of the same table.
  struct Key {
    std::string_view rule;
    std::string_view identity;
    std::size_t hash;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept { return key.hash; }
  };
  /// In a delta, nullptr marks a removed key of the base; the marker's Key points into the base.
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

/// The overrides that apply to one decision request.
struct OverrideView {
  const OverrideTable* table = nullptr;  ///< nullptr: there are no overrides.
  /// True: only quota overrides apply, for operations that banned keys may have, such as a refund.
  bool quotas_only = false;

  [[nodiscard]] const OverrideTable::Entry* Find(std::string_view rule,
                                                 std::string_view identity) const noexcept {
    if (table == nullptr || table->empty()) [[likely]]
      return nullptr;
    return table->Find(rule, identity);
  }
};

/// Turns the changes that a SharedOverrides reports into override tables, and owns the current one.
/// Parses only the entries that a change names. No I/O. Not thread-safe; the tables are.
class LiveOverrides {
 public:
  struct Update {
    std::shared_ptr<const OverrideTable> table;  ///< The table after the change.
    /// Keys whose override was added, replaced or removed: denials cached for them must be dropped.
    std::vector<OverrideKey> keys;
    /// Changed entries that are no valid override: perhaps a later version wrote them.
    std::size_t invalid = 0;
  };

  /// REQUIRES: `clock` outlives this object and all tables made by it.
  explicit LiveOverrides(const Clock& clock);

  /// Applies a change and returns the new current table.
  [[nodiscard]] Update Apply(const SharedOverrides::Delta& delta);

  [[nodiscard]] const std::shared_ptr<const OverrideTable>& table() const noexcept {
    return table_;
  }

 private:
  /// Computes `until` of all entries again if the register's clock was stepped.
  void FollowClock(std::int64_t now_ms, Time now);

  const Clock& clock_;
  std::shared_ptr<const OverrideTable> table_;
  Micros offset_{0};  ///< The register's clock minus the node's clock, at the last change.
};

}  // namespace tidegate

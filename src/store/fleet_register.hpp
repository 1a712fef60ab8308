// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate {

/// A small table that all nodes of a fleet share, and a record of who changed what. The register
/// does not interpret fields and values. It reports changes, not tables, so that consumers do work
/// for the entries that changed only. Belongs to one reactor and is used on its thread only.
class FleetRegister {
 public:
  /// Beyond so many fields nothing is added: a configuration is the place for more. Every change is
  /// read as a whole by every node, between two decisions.
  static constexpr std::size_t kMost = 1'000;
  /// So many records are kept, the latest.
  static constexpr std::size_t kRecords = 1'000;
  /// Number of records of failed authentications that are kept, beside kRecords: anybody can cause
  /// them, and they must not displace the records of operators.
  static constexpr std::size_t kFailureRecords = 200;

  struct Entry {
    std::string field;
    std::string value;
    std::int64_t since_ms = 0;               ///< By the keeper's clock.
    std::optional<std::int64_t> expires_ms;  ///< Likewise; nothing: never.
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// The whole table at one moment.
  struct Table {
    std::int64_t now_ms = 0;  ///< By the keeper's clock.
    std::vector<Entry> entries;
  };
  /// The difference between two moments of the table. No field is in both lists.
  struct Delta {
    std::int64_t now_ms = 0;           ///< By the keeper's clock.
    std::vector<Entry> changed;        ///< Added or replaced.
    std::vector<std::string> removed;  ///< Fields that were removed or have expired.
    [[nodiscard]] bool empty() const noexcept { return changed.empty() && removed.empty(); }
  };
  using OnChange = std::function<void(const Delta&)>;
  struct Record {
    std::int64_t time_ms = 0;
    bool applied = false;
    std::string text;
  };
  /// Merges two lists of records that each begin with the latest, and returns the first `most`.
  [[nodiscard]] static std::vector<Record> Merge(std::vector<Record> a,
                                                 const std::vector<Record>& b, std::size_t most);
  /// Which records were written but are no longer kept.
  struct History {
    std::int64_t since_ms = 0;            ///< There can be no records from before.
    std::optional<std::int64_t> lost_ms;  ///< When Redis was last found to have lost records.
    std::uint64_t missing_changes = 0;    ///< Dropped because newer ones came, or lost.
    std::uint64_t missing_failures = 0;   ///< Likewise.
    [[nodiscard]] bool complete() const noexcept {
      return !lost_ms && missing_changes == 0 && missing_failures == 0;
    }
  };
  struct Audit {
    std::vector<Record> records;  ///< The latest first.
    History history;
  };
  struct Change {
    bool applied = false;                    ///< There was something to do.
    std::optional<std::int64_t> expires_ms;  ///< Of what was put.
  };
  /// An Error of kUnavailable: the request was not sent, or was refused; nothing was changed. Of
  /// kNetwork: it was sent and not answered; it may or may not have been carried out. Of
  /// kExhausted: the table is full.
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~FleetRegister() = default;

  /// `record` is what is written down about the change.
  virtual void Put(const std::string& field, const std::string& value,
                   std::optional<std::chrono::milliseconds> ttl, const std::string& record,
                   Done<Change> done) = 0;
  virtual void Remove(const std::string& field, const std::string& record, Done<Change> done) = 0;
  /// A change that was made elsewhere.
  virtual void Note(const std::string& record, bool applied, Done<Change> done) = 0;
  /// Adds the record of a failed authentication.
  virtual void NoteFailure(const std::string& record, Done<Change> done) = 0;
  /// Returns the latest records of both kinds, at most so many, and what is known of older ones.
  virtual void Records(std::size_t most, Done<Audit> done) = 0;
  /// Whether it is this node's own, and always true.
  [[nodiscard]] virtual bool local() const noexcept = 0;
  /// Since the table is known to be true; nothing: it never was.
  [[nodiscard]] virtual std::optional<std::chrono::milliseconds> age() const = 0;
};

}  // namespace tidegate

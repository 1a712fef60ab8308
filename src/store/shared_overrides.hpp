// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// A small table that all nodes of a fleet share, and a record of who changed what. The class does
/// not interpret fields and values. It reports changes, not tables, so that consumers do work only
/// for the entries that changed. Its keeper is Redis or, if it is local, this node. Belongs to one
/// reactor and is used on its thread only.
class SharedOverrides {
 public:
  /// The most fields of the table; further overrides belong in the configuration. After every
  /// change, every node reads the whole table, between two decisions.
  static constexpr std::size_t kMost = 1'000;
  /// The number of the latest records that are kept.
  static constexpr std::size_t kRecords = 1'000;
  /// Number of records of failed authentications that are kept, beside kRecords: any client can
  /// cause them, and they must not displace the records of operators.
  static constexpr std::size_t kFailureRecords = 200;

  struct Entry {
    std::string field;
    std::string value;
    std::int64_t since_ms = 0;               ///< The time of the Put, by the keeper's clock.
    std::optional<std::int64_t> expires_ms;  ///< The time of expiry, by that clock; nothing: never.
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// The whole table at one moment.
  struct Table {
    std::int64_t now_ms = 0;  ///< The time of that moment, by the keeper's clock.
    std::vector<Entry> entries;
  };
  /// The difference between two moments of the table. No field is in both lists.
  struct Delta {
    std::int64_t now_ms = 0;           ///< The time of the later moment, by the keeper's clock.
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
  /// The records that were written but are no longer kept.
  struct History {
    std::int64_t since_ms = 0;            ///< The time before which there can be no records.
    std::optional<std::int64_t> lost_ms;  ///< The last time at which Redis had lost records.
    /// The number of change records that were lost, or dropped to make room for newer ones.
    std::uint64_t missing_changes = 0;
    /// The same number for records of failed authentications.
    std::uint64_t missing_failures = 0;
    [[nodiscard]] bool complete() const noexcept {
      return !lost_ms && missing_changes == 0 && missing_failures == 0;
    }
  };
  struct Audit {
    std::vector<Record> records;  ///< In order, the latest first.
    History history;
  };
  struct Change {
    bool applied = false;                    ///< True if the change was applied.
    std::optional<std::int64_t> expires_ms;  ///< The time at which a new entry expires.
  };
  /// Receives a result. An Error of kUnavailable means that the request was not sent or was
  /// refused, so nothing was changed; of kNetwork, that it was sent and not answered, so it may or
  /// may not have been carried out; of kExhausted, that the table is full.
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~SharedOverrides() = default;

  /// Adds or replaces an entry. `record` is the text that is recorded about the change.
  virtual void Put(const std::string& field, const std::string& value,
                   std::optional<std::chrono::milliseconds> ttl, const std::string& record,
                   Done<Change> done) = 0;
  virtual void Remove(const std::string& field, const std::string& record, Done<Change> done) = 0;
  /// Adds the record of a change that was made elsewhere.
  virtual void Note(const std::string& record, bool applied, Done<Change> done) = 0;
  /// Adds the record of a failed authentication.
  virtual void NoteFailure(const std::string& record, Done<Change> done) = 0;
  /// Passes to `done` at most `most` of the latest records of both kinds, and the History of older
  /// records.
  virtual void Records(std::size_t most, Done<Audit> done) = 0;
  /// Returns true if the table is this node's own, and therefore always up to date.
  [[nodiscard]] virtual bool local() const noexcept = 0;
  /// Returns how long ago the table was last known to be up to date; nothing if it never was.
  [[nodiscard]] virtual std::optional<std::chrono::milliseconds> age() const = 0;
};

/// The overrides of a node that is its own fleet: they end with the process, as the memory store
/// does.
class LocalOverrides final : public SharedOverrides {
 public:
  /// `on_change` is called for every difference, before the `done` of the change that caused it.
  /// Entries that have expired are reported as removed with the next change. REQUIRES: `clock`
  /// outlives this object.
  LocalOverrides(const Clock& clock, OnChange on_change, std::size_t most = kMost)
      : clock_(clock), on_change_(std::move(on_change)), most_(most), since_ms_(NowMs()) {}

  void Put(const std::string& field, const std::string& value,
           std::optional<std::chrono::milliseconds> ttl, const std::string& record,
           Done<Change> done) override;
  void Remove(const std::string& field, const std::string& record, Done<Change> done) override;
  void Note(const std::string& record, bool applied, Done<Change> done) override {
    WriteDown(record, applied);
    done(Change{applied, std::nullopt});
  }
  void NoteFailure(const std::string& record, Done<Change> done) override;
  void Records(std::size_t most, Done<Audit> done) override;
  [[nodiscard]] bool local() const noexcept override { return true; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> age() const override {
    return std::chrono::milliseconds{0};
  }

 private:
  /// The latest records of one kind, the latest first.
  struct Kept {
    void Add(Record record, std::size_t most) {
      records.push_front(std::move(record));
      if (records.size() <= most) return;
      records.pop_back();
      ++dropped;
    }
    std::deque<Record> records;
    std::uint64_t dropped = 0;
  };

  [[nodiscard]] std::int64_t NowMs() const;
  /// Removes expired entries and returns a delta that names them.
  [[nodiscard]] Delta RemoveExpired(std::int64_t now);
  void Report(const Delta& delta) const {
    if (!delta.empty()) on_change_(delta);
  }
  void WriteDown(const std::string& record, bool applied);

  const Clock& clock_;
  const OnChange on_change_;
  const std::size_t most_;
  const std::int64_t since_ms_;
  std::map<std::string, Entry> entries_;
  Kept changes_;
  Kept failures_;
};

}  // namespace tidegate

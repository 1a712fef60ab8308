// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/redis/client.hpp"
#include "store/shared_overrides.hpp"

namespace tidegate::redis {

/// The fleet's register in Redis. Every change names a new version and is published where refunds
/// are. A node that hears of it, or finds another version when it polls, which it does twice a
/// second, reads the whole table and reports the difference. While Redis does not answer, the last
/// table stays.
class RedisOverrides final : public SharedOverrides, private net::Timer {
 public:
  static constexpr std::chrono::milliseconds kEvery{500};
  static constexpr std::chrono::milliseconds kSoon{50};

  struct Listener {
    OnChange on_change;  ///< Called with every difference, and only if there is one.
    std::function<void(const std::string&)> on_problem;    ///< Why it cannot be read, once each.
    std::function<void(std::size_t entries)> on_restored;  ///< It had gone, and was put back.
  };
  /// On the client's reactor, as everything here.
  RedisOverrides(net::Reactor& reactor, Client& client, Listener listener);

  void Start() { Poll(); }
  void Stop() {
    Disarm();
    TellMakers();
  }
  /// The table has changed in Redis.
  void OnChanged() { PollAgain(); }

  void Put(const std::string& field, const std::string& value,
           std::optional<std::chrono::milliseconds> ttl, const std::string& record,
           Done<Change> done) override;
  void Remove(const std::string& field, const std::string& record, Done<Change> done) override;
  void Note(const std::string& record, bool applied, Done<Change> done) override {
    AddRecord("note", kRecords, record, applied, std::move(done));
  }
  void NoteFailure(const std::string& record, Done<Change> done) override {
    AddRecord("note_failure", kFailureRecords, record, false, std::move(done));
  }
  void Records(std::size_t most, Done<Audit> done) override;
  [[nodiscard]] bool local() const noexcept override { return false; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> age() const override;

  /// The numbers of records that were ever written, as Redis counts them.
  struct Written {
    std::int64_t changes = 0;
    std::int64_t failures = 0;
  };
  /// What Redis's reply to a poll says; nothing: something else. No I/O.
  struct Polled {
    std::string version;
    Written written;
    std::optional<Table> table;  ///< Where it is another version than the one that was known.
  };
  [[nodiscard]] static std::optional<Polled> ReadPoll(const Reply& reply);
  /// Returns what must change in `before` to get `after`. No I/O.
  [[nodiscard]] static Delta Difference(const Table& before, const Table& after);
  [[nodiscard]] static std::optional<Record> ReadRecord(std::string_view text);
  /// Returns what Redis's reply to `records` says; nothing if it is malformed. No I/O.
  [[nodiscard]] static std::optional<Audit> ReadAudit(const Reply& reply, std::size_t most);

 private:
  void OnTimer(net::Timer::Clock::time_point) override { Poll(); }
  void Poll();
  void PollAgain();
  void TellMakers() {
    for (const auto& done : std::exchange(after_poll_, {})) done();
  }
  void OnPolled(const Reply* reply);
  /// Redis has lost what is known here: bans must outlive a flush as long as a node knows them.
  /// The latest version that any node knows wins.
  void Restore();
  [[nodiscard]] std::string KnownNumber() const;
  void Ask(const std::vector<std::string>& words, Done<Change> done);
  /// Returns the register's script as a command.
  [[nodiscard]] std::string Command(const std::vector<std::string>& words) const;
  /// Adds a record: `note` or `note_failure`, and the most that are kept.
  void AddRecord(const std::string& note, std::size_t most, const std::string& record, bool applied,
                 Done<Change> done);
  /// Remembers how many records there were, to notice that Redis has lost some.
  void RememberWritten(Written written) noexcept {
    seen_.changes = std::max(seen_.changes, written.changes);
    seen_.failures = std::max(seen_.failures, written.failures);
  }

  Client& client_;
  const Listener listener_;
  std::string problem_;                 ///< The last one that was reported.
  std::optional<std::string> version_;  ///< Nothing: none was read yet.
  Table known_;                         ///< Of that version.
  bool polling_ = false;
  std::vector<std::function<void()>> after_poll_;  ///< Changes whose makers wait to see them.
  bool again_ = false;                             ///< It has changed while it was being read.
  std::optional<net::Timer::Clock::time_point> true_at_;
  Written seen_;  ///< The highest numbers that Redis has reported.
};

}  // namespace tidegate::redis

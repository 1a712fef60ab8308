// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/fleet_register.hpp"
#include "store/redis/client.hpp"

namespace tidegate::redis {

/// The fleet's register in Redis. Every change names a new version and is published where refunds
/// are; who hears of it, or finds another version when it asks, which it does twice a second, reads
/// the table anew. While Redis does not answer, the last table stays.
class RedisRegister final : public FleetRegister, private net::Timer {
 public:
  static constexpr std::chrono::milliseconds kEvery{500};
  static constexpr std::chrono::milliseconds kSoon{50};

  /// `on_table` is told of every new table, `on_problem` why it cannot be read, once for each
  /// reason. On the client's reactor, as everything here.
  RedisRegister(net::Reactor& reactor, Client& client, std::function<void(const Table&)> on_table,
                std::function<void(const std::string&)> on_problem);

  void Start() { Poll(); }
  void Stop() {
    Disarm();
    TellMakers();
  }
  /// Somebody says that it has changed.
  void OnChanged() { PollAgain(); }

  void Put(const std::string& field, const std::string& value,
           std::optional<std::chrono::milliseconds> ttl, const std::string& record,
           Done<Change> done) override;
  void Remove(const std::string& field, const std::string& record, Done<Change> done) override;
  void Note(const std::string& record, bool applied, Done<Change> done) override;
  void Records(std::size_t most, Done<std::vector<Record>> done) override;
  [[nodiscard]] std::optional<std::chrono::milliseconds> age() const override;

  /// What Redis's reply to a poll says; nothing: something else. No I/O.
  struct Polled {
    std::string version;
    std::optional<Table> table;  ///< Where it is another version than the one that was known.
  };
  [[nodiscard]] static std::optional<Polled> ReadPoll(const Reply& reply);
  [[nodiscard]] static std::optional<Record> ReadRecord(std::string_view text);

 private:
  void OnTimer(net::Timer::Clock::time_point) override { Poll(); }
  void Poll();
  void PollAgain();
  void TellMakers();
  void OnPolled(const Reply* reply);
  void Ask(std::vector<std::string> words, Done<Change> done);
  [[nodiscard]] std::string Command(const std::vector<std::string>& words) const;

  Client& client_;
  std::function<void(const Table&)> on_table_;
  std::function<void(const std::string&)> on_problem_;
  std::string problem_;                 ///< The last one that was told.
  std::optional<std::string> version_;  ///< Nothing: none was read yet.
  bool polling_ = false;
  std::vector<std::function<void()>> after_poll_;  ///< Changes whose makers wait to see them.
  bool again_ = false;                             ///< It has changed while it was being read.
  std::optional<net::Timer::Clock::time_point> true_at_;
};

}  // namespace tidegate::redis

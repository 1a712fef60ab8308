// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/breaker.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// Learns from the sentinels which Redis is the master. A state machine without I/O and clock.
///
/// It subscribes to the failovers of one sentinel at a time and queries it: on connecting, every
/// kEvery, and about every kAgain (less often after a while) while the master is in trouble. The
/// next sentinel's turn comes when a sentinel is gone, does not know the master, or has an older
/// configuration epoch than another one (unless all have). After all sentinels have failed once,
/// there are growing pauses between the attempts.
class SentinelView {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kEvery{5000};
  /// A sentinel that reports a master in trouble this many times may be cut off: try another one.
  static constexpr std::size_t kMostFruitless = 2;
  static constexpr std::chrono::milliseconds kAgain{100};  ///< Plus a random time of up to a half.
  static constexpr std::size_t kMostSentinels = 64;

  /// Begins with a random sentinel, at once. REQUIRES: `sentinels` is not empty.
  SentinelView(std::vector<Endpoint> sentinels, std::string master_name, std::uint64_t seed);

  /// Returns the sentinel to connect to at connect_at().
  [[nodiscard]] const Endpoint& sentinel() const noexcept { return sentinels_[at_]; }
  [[nodiscard]] TimePoint connect_at() const noexcept { return connect_at_; }
  /// Returns nothing until a sentinel has reported the master.
  [[nodiscard]] const std::optional<Endpoint>& master() const noexcept { return master_; }
  /// Returns the configured sentinels and those that they report, kMostSentinels at most.
  [[nodiscard]] const std::vector<Endpoint>& sentinels() const noexcept { return sentinels_; }

  /// The connection is up and subscribed to `+switch-master` and `+promoted-slave`.
  void OnConnected(TimePoint now);
  /// The connection broke or could not be made, or was closed after News::kUseless.
  void OnLost(TimePoint now);

  /// Returns when to call Ask; TimePoint::max() while there is no connection or replies are
  /// awaited.
  [[nodiscard]] TimePoint ask_at() const noexcept { return ask_at_; }
  /// Appends a round of queries: `SENTINEL GET-MASTER-ADDR-BY-NAME`, `MASTER` for the epoch, and
  /// `SENTINELS` for the other sentinels. OnReply takes the replies in the same order.
  void Ask(std::string& out, TimePoint now);

  enum class News : std::uint8_t {
    kNothing,
    kMaster,   ///< master() has changed.
    kUseless,  ///< problem() says why to close the connection and call OnLost.
  };
  [[nodiscard]] News OnReply(const Reply& reply, TimePoint now);
  /// Takes a published message. `+switch-master` changes the master at once; `+promoted-slave`
  /// makes the next round of queries due at once.
  [[nodiscard]] News OnPush(const Reply& push, TimePoint now);

  /// The master does not answer or is not a master: queries are due often until OnWell.
  void OnTrouble(TimePoint now);
  void OnWell() noexcept;
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// When to begin another round of queries after the present one.
  enum class Wanted : std::uint8_t { kNo, kSoon, kNow };

  [[nodiscard]] News OnAddress(const Reply& reply);
  [[nodiscard]] News OnMaster(const Reply& reply);
  void OnOthers(const Reply& reply);
  [[nodiscard]] News Believe(const Endpoint& address);
  void AskNow(TimePoint now);
  [[nodiscard]] News Useless(std::string why);
  /// Schedules the next round of queries.
  void Rest(TimePoint now);
  [[nodiscard]] TimePoint Soon(TimePoint now);

  std::vector<Endpoint> sentinels_;
  std::size_t configured_ = 0;  ///< The first sentinels, which are never dropped.
  std::size_t at_ = 0;          ///< The index of the sentinel in use.
  const std::string name_;
  std::optional<Endpoint> master_;
  std::size_t behind_ = 0;  ///< The number of sentinels in a row with an epoch before epoch_.
  bool trouble_ = false;
  std::size_t in_trouble_ = 0;     ///< The number of rounds since the trouble began.
  std::size_t fruitless_ = 0;      ///< The number of such rounds in a row that changed nothing.
  std::int64_t epoch_ = -1;        ///< The highest epoch of any sentinel.
  std::optional<Endpoint> named_;  ///< The master in the first reply of this round.
  int awaited_ = 0;                ///< The number of replies that are missing in this round.
  Wanted wanted_ = Wanted::kNo;
  std::size_t failures_ = 0;  ///< The number of failed connections in a row.
  bool connected_ = false;
  bool useful_ = false;  ///< This connection has completed a round.
  TimePoint connect_at_{};
  TimePoint ask_at_ = TimePoint::max();
  TimePoint last_asked_{};
  std::string problem_;
  Backoff backoff_;
};

}  // namespace tidegate::redis

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

/// The master, as one reactor learns it from the sentinels. No I/O, no clock of its own.
///
/// One sentinel at a time is subscribed to (`+switch-master`) and queried: on connecting, every
/// kEvery, and about every kAgain (less often after a while) while the master is in trouble. A
/// sentinel that is gone, does not know the master, or has an older configuration epoch than
/// another one (unless all have) is left for the next one; after all have failed once, with growing
/// pauses.
class SentinelView {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kEvery{5000};
  /// A sentinel that has named a master in trouble so often may be cut off: try another one.
  static constexpr std::size_t kMostFruitless = 2;
  static constexpr std::chrono::milliseconds kAgain{100};  ///< And up to half of it more.
  static constexpr std::size_t kMostSentinels = 64;

  /// `sentinels`: at least one. Begins with a random one, at once.
  SentinelView(std::vector<Endpoint> sentinels, std::string master_name, std::uint64_t seed);

  /// The sentinel to connect to, at connect_at().
  [[nodiscard]] const Endpoint& sentinel() const noexcept { return sentinels_[at_]; }
  [[nodiscard]] TimePoint connect_at() const noexcept { return connect_at_; }
  /// Nothing: no sentinel has named one yet.
  [[nodiscard]] const std::optional<Endpoint>& master() const noexcept { return master_; }
  /// All known sentinels: the configured ones and those that they name, kMostSentinels at most.
  [[nodiscard]] const std::vector<Endpoint>& sentinels() const noexcept { return sentinels_; }

  /// The connection is up and subscribed to `+switch-master` and `+promoted-slave`: ask at once.
  void OnConnected(TimePoint now);
  /// It broke, could not be made, or OnReply called it useless: the next sentinel's turn.
  void OnLost(TimePoint now);

  /// When to ask; TimePoint::max() while not connected, or while replies are awaited.
  [[nodiscard]] TimePoint ask_at() const noexcept { return ask_at_; }
  /// Appends the questions (`SENTINEL GET-MASTER-ADDR-BY-NAME`, `SENTINEL MASTER` for the epoch,
  /// `SENTINEL SENTINELS` for the others); each reply is handed to OnReply, in order.
  void Ask(std::string& out, TimePoint now);

  enum class News : std::uint8_t {
    kNothing,
    kMaster,   ///< master() is another one now, or known for the first time.
    kUseless,  ///< This sentinel is of no use: close the connection, and OnLost.
  };
  [[nodiscard]] News OnReply(const Reply& reply, TimePoint now);
  /// A published message. `+switch-master` of our master is believed at once; `+promoted-slave`
  /// makes it ask at once.
  [[nodiscard]] News OnPush(const Reply& push, TimePoint now);

  /// The master does not answer, or is not a master. Asks soon, and again until OnWell.
  void OnTrouble(TimePoint now);
  void OnWell() noexcept;
  /// After kUseless: why, for people.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// Another round of questions, after the one that is under way.
  enum class Wanted : std::uint8_t { kNo, kSoon, kNow };

  [[nodiscard]] News OnAddress(const Reply& reply);
  [[nodiscard]] News OnMaster(const Reply& reply);
  void OnOthers(const Reply& reply);
  [[nodiscard]] News Believe(const Endpoint& address);
  [[nodiscard]] News Unknown() {
    return Useless("has no master named '" + name_ +
                   "': write the name in its `sentinel monitor` line");
  }
  void AskNow(TimePoint now);
  [[nodiscard]] News Useless(std::string why);
  /// The round is over.
  void Rest(TimePoint now);
  [[nodiscard]] TimePoint Soon(TimePoint now);

  std::vector<Endpoint> sentinels_;
  std::size_t of_start_ = 0;  ///< So many are never forgotten.
  std::size_t at_ = 0;
  const std::string name_;
  std::optional<Endpoint> master_;
  std::size_t behind_ = 0;  ///< Sentinels in a row that were behind what is known.
  bool trouble_ = false;
  std::size_t in_trouble_ = 0;     ///< Questions since it began.
  std::size_t fruitless_ = 0;      ///< Such questions in a row that changed nothing.
  std::int64_t epoch_ = -1;        ///< The highest that a sentinel had.
  std::optional<Endpoint> named_;  ///< By the first of the replies awaited.
  int awaited_ = 0;
  Wanted wanted_ = Wanted::kNo;
  std::size_t failures_ = 0;  ///< In a row.
  bool connected_ = false;
  bool useful_ = false;  ///< This connection has been.
  TimePoint connect_at_{};
  TimePoint ask_at_ = TimePoint::max();
  TimePoint last_asked_{};
  std::string problem_;
  Backoff backoff_;
};

}  // namespace tidegate::redis

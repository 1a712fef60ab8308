// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/gateway_spec.hpp"
#include "gateway/routing.hpp"
#include "net/channel.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"

namespace tidegate {

/// Chooses a member of an upstream for each request of one reactor. No I/O.
class Balancer {
 public:
  /// The reasons why no member can be chosen.
  enum class Lack : std::uint8_t { kDown, kFull };
  struct Picked {
    std::shared_ptr<Member> member;  ///< nullptr: none could be chosen because of `lack`.
    Lack lack = Lack::kDown;
  };

  Balancer(UpstreamSpec::Balance balance, std::size_t max_requests) noexcept
      : balance_(balance), max_requests_(max_requests) {}

  /// Sets the members. Members that were set before keep their place in the round.
  void Use(const Members& members);

  /// Chooses the next member that is up and has room, and increments its `active`. Members in
  /// `tried` are chosen only if there is no other.
  [[nodiscard]] Picked Pick(std::span<const Member* const> tried, Member::Clock::time_point now);

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Seat {
    std::shared_ptr<Member> member;
    std::int64_t credit = 0;  ///< Grows by the weight in each round.
  };
  [[nodiscard]] std::size_t Next(std::span<const Member* const> avoided,
                                 Member::Clock::time_point now, bool& full);
  [[nodiscard]] bool Claim(Member& member) const noexcept;

  const UpstreamSpec::Balance balance_;
  const std::size_t max_requests_;
  std::size_t turn_ = 0;
  std::vector<Seat> seats_;
};

/// The result of an attempt, as far as its target is responsible for it.
enum class AttemptResult : std::uint8_t { kGood, kBad };

/// Records the result of an attempt. Ejects a member that failed too often in a row, for longer
/// each time, if enough others are left. Returns true if the member was ejected now.
bool NoteAttempt(Member& member, AttemptResult result, const UpstreamSpec::Ejection& ejection,
                 const Members& all, Member::Clock::time_point now) noexcept;

/// The ways in which an attempt can fail.
enum class AttemptFailure : std::uint8_t {
  kConnect,         ///< The connection could not be established, so nothing was sent.
  kConnectTimeout,  ///< There was no connection within `connect_timeout`.
  kReset,           ///< The upstream ended the connection before its response was complete.
  kTimeout,         ///< The upstream did not respond in time.
  kBadAnswer,       ///< The response is malformed or ambiguous.
  kStatus,          ///< The status of the response is 502, 503 or 504.
};
inline constexpr std::size_t kAttemptFailures = 6;

/// The properties of a request that decide whether it may be sent again.
struct Replay {
  bool nothing_sent = false;  ///< Not a byte of the request has been sent.
  bool idempotent = false;    ///< Its method is idempotent (RFC 9110, 9.2.2).
  bool whole = false;         ///< The whole request is still in memory.
};

/// The targets that a request was sent to so far.
class TriedTargets {
 public:
  void Clear() noexcept { count_ = 0; }
  void Add(const Member& member) noexcept {
    if (count_ < static_cast<int>(kRemembered)) {
      members_[static_cast<std::size_t>(count_)] = &member;
    }
    ++count_;
  }
  /// Returns the first eight targets, which a retry avoids.
  [[nodiscard]] std::span<const Member* const> remembered() const noexcept {
    return {members_.data(), std::min(static_cast<std::size_t>(count_), kRemembered)};
  }
  /// Returns the number of attempts.
  [[nodiscard]] int count() const noexcept { return count_; }

 private:
  static constexpr std::size_t kRemembered = 8;
  std::array<const Member*, kRemembered> members_{};
  int count_ = 0;
};

[[nodiscard]] constexpr bool IsIdempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE" || method == "TRACE";
}

/// Returns true if a request may be sent again after `attempts` attempts. A request that was sent
/// and is not idempotent may not be sent again, because the upstream may have executed it.
[[nodiscard]] inline bool MayRetry(const UpstreamSpec::Retries& retries, AttemptFailure failure,
                                   int status, int attempts, const Replay& replay) noexcept {
  if (attempts > retries.attempts || !replay.whole) return false;
  if (replay.nothing_sent) return true;
  if (!replay.idempotent) return false;
  switch (failure) {
    case AttemptFailure::kConnect:
    case AttemptFailure::kConnectTimeout:
    case AttemptFailure::kReset: return true;
    case AttemptFailure::kTimeout: return retries.timeout;
    case AttemptFailure::kStatus:
      return std::ranges::find(retries.statuses, status) != retries.statuses.end();
    case AttemptFailure::kBadAnswer: return false;
  }
  return false;
}

/// Limits the retries of one reactor to a share of its requests to an upstream, so that they do not
/// overload a failing upstream. Saves up to 100 unused retries, which are enough when a target is
/// killed.
class RetryBudget {
 public:
  explicit RetryBudget(int percent) noexcept : percent_(percent) {}

  void OnRequest() noexcept { cents_ = std::min<std::int64_t>(cents_ + percent_, kMost); }
  [[nodiscard]] bool Take() noexcept {
    if (cents_ < 100) return false;
    cents_ -= 100;
    return true;
  }

 private:
  static constexpr std::int64_t kMost = 10'000;  ///< A hundred retries.
  const int percent_;
  std::int64_t cents_ = kMost;
};

class UpstreamPool;

/// One connection to one member. Owned by its pool, which lends it to one user at a time.
class UpstreamConnection final : public net::Watcher,
                                 public net::Deadlines::Node,
                                 public boost::intrusive::list_base_hook<
                                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// The request or health check that uses the connection.
  class User {
   public:
    /// Called when the connection is up, unless it was up when it was lent.
    virtual void OnUpstreamUp() = 0;
    /// Called when the connection has failed because of `problem`. It is closed: do not use it.
    virtual void OnUpstreamFailed(const std::string& problem) = 0;
    /// Called when the connection can be read or written.
    virtual void OnUpstreamReady() = 0;

   protected:
    ~User() = default;
  };

  UpstreamConnection(UpstreamPool& pool, std::shared_ptr<Member> member);

  [[nodiscard]] net::Channel& channel() noexcept { return channel_; }
  [[nodiscard]] Member& member() noexcept { return *member_; }
  [[nodiscard]] bool up() const noexcept { return state_ == State::kUp; }

 private:
  friend class UpstreamPool;
  enum class State : std::uint8_t { kConnecting, kShaking, kUp, kIdle, kClosed };

  /// Starts to connect. Returns false if that failed because of `problem`; `ours` is then true if
  /// this machine is the cause.
  [[nodiscard]] bool Connect(std::string& problem, bool& ours);
  void OnReady(std::uint32_t events) override;
  void OnDeadline(net::Deadlines::Kind kind) override;
  void OnConnected();
  void Shake();
  void Fail(const std::string& problem);

  UpstreamPool& pool_;
  const std::shared_ptr<Member> member_;
  net::Channel channel_;
  State state_ = State::kConnecting;
  User* user_ = nullptr;
};

/// One reactor's connections to one upstream: lends them to requests and keeps the idle ones.
class UpstreamPool {
 public:
  UpstreamPool(net::Reactor& reactor, net::BufferPool& buffers,
               const std::shared_ptr<Upstream>& upstream,
               int max_descriptor = std::numeric_limits<int>::max());
  ~UpstreamPool();

  [[nodiscard]] net::Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }
  /// New connections must have descriptors below this number (Gateway::Options).
  [[nodiscard]] int max_descriptor() const noexcept { return max_descriptor_; }
  [[nodiscard]] Upstream& upstream() noexcept { return *upstream_; }
  [[nodiscard]] RetryBudget& budget() noexcept { return budget_; }
  [[nodiscard]] const Members& members() {
    if (version_ != upstream_->version()) Refresh();
    return *members_;
  }

  /// Chooses a member for a request, as Balancer::Pick does.
  [[nodiscard]] Balancer::Picked Choose(std::span<const Member* const> tried) {
    if (version_ != upstream_->version()) Refresh();
    return balancer_.Pick(tried, reactor_.now());
  }
  /// Ends the request that Choose counted.
  static void Done(Member& member) noexcept {
    member.active.fetch_sub(1, std::memory_order_relaxed);
  }

  using Clock = net::Deadlines::Clock;
  /// Returns a connection to `member` for `user`: an idle one, which is up, or a new one. Returns
  /// nullptr if it failed because of `problem`; `ours` is then true if this machine is the cause.
  /// `now` is the exact time.
  [[nodiscard]] UpstreamConnection* Lend(const std::shared_ptr<Member>& member,
                                         UpstreamConnection::User& user, Clock::time_point now,
                                         std::string& problem, bool& ours);
  /// Keeps a connection after a complete response, for another request.
  void Return(UpstreamConnection& connection);
  /// Closes a connection.
  void Discard(UpstreamConnection& connection);

 private:
  using List =
      boost::intrusive::list<UpstreamConnection, boost::intrusive::constant_time_size<false>>;
  /// The idle connections to one member.
  struct Seat {
    std::shared_ptr<Member> member;
    List idle;      ///< Connections that were returned before `round`.
    List returned;  ///< Connections that were returned in `round`.
    std::uint64_t round = 0;
    std::size_t count = 0;
  };
  /// Moves connections that were returned in an earlier round to `idle`: they have been idle since
  /// this round began.
  void BeginRound(Seat& seat) noexcept {
    if (std::exchange(seat.round, reactor_.round()) == reactor_.round()) return;
    seat.idle.splice(seat.idle.end(), seat.returned);
  }
  [[nodiscard]] UpstreamConnection* TakeIdle(Seat& seat, Clock::time_point now);
  void Refresh();
  [[nodiscard]] Seat* SeatOf(const Member& member) noexcept {
    for (const auto& seat : seats_) {
      if (seat != nullptr && seat->member.get() == &member) return seat.get();
    }
    return nullptr;
  }
  void Empty(Seat& seat) {
    for (List* const list : {&seat.idle, &seat.returned}) {
      while (!list->empty()) Discard(list->front());
    }
    seat.count = 0;
  }

  net::Reactor& reactor_;
  net::BufferPool& buffers_;
  const int max_descriptor_;
  const std::shared_ptr<Upstream> upstream_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const Members> members_;
  Balancer balancer_;
  RetryBudget budget_;
  std::vector<std::unique_ptr<Seat>> seats_;
  List lent_;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/redis/backoff.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/batch_pool.hpp"
#include "store/redis/breaker.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/link.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/round.hpp"
#include "tidegate/call.hpp"

namespace tidegate::redis {

/// One reactor's way to one Redis: group commit.
///
/// A round leaves at the end of the reactor's round in which its first call came, if none is under
/// way; else as soon as the one under way is answered, with all that have come meanwhile. A second
/// one is sent before that only if it is full. So nothing waits for a timer, and under load Redis's
/// work grows with distinct keys, not with calls.
///
/// Every call that it takes is handed back exactly once, answered or failed, or leaves with its
/// batch for another node. What was sent and not answered is never sent again.
class Node final : public net::Watcher, private Link::Listener, private net::Timer {
 public:
  using Clock = std::chrono::steady_clock;

  class Listener {
   public:
    /// `sent`: when the batch left; whatever Redis told was not true before. `told`: this node
    /// tells of refunds.
    virtual void OnAnswered(Call& call, Clock::time_point sent, bool told) = 0;
    virtual void OnFailed(Call& call, Reason reason) = 0;
    /// Redis did nothing of it and says that another one would, or that its slot is not to be had
    /// now (`kind`).
    virtual void OnElsewhere(Node& node, std::unique_ptr<Batch> batch, ErrorKind kind,
                             std::string_view error) = 0;
    virtual void OnInvalidated(std::string_view key) = 0;
    virtual void OnNodeUp(Node& node) = 0;
    virtual void OnNodeDown(Node& node, ErrorKind kind, const std::string& problem) = 0;
    virtual void OnRefused(Node& node, ErrorKind kind, const std::string& error) = 0;
    virtual void OnHealed(Node& node, std::int64_t healed, std::int64_t failed_writes) = 0;
    /// The breaker opens, or closes.
    virtual void OnBreaker(Node& node) = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    Link::Options link;
    std::string channel;
    std::chrono::microseconds deadline = std::chrono::milliseconds{20};
  };

  Node(net::Reactor& reactor, const Options& options, BatchPool& batches, ClientStats& stats,
       Listener& listener);
  ~Node() override;

  /// Connects, and keeps connecting. On the reactor's thread, as everything here.
  void Start();
  /// Fails all that wait and closes the connection, for good.
  void Stop();
  /// What has not been sent yet leaves for `other`; then as Stop.
  void StopFor(Node& other);

  /// `single`: with nobody but those who ask the same. False: it fails, for that reason.
  [[nodiscard]] bool Take(Call& call, Slot slot, bool single, Reason& reason);
  /// One that was sent to another node, which did nothing of it.
  void Take(std::unique_ptr<Batch> batch);
  /// Runs a command beside the batches, once connected; `done` gets the reply, or nothing.
  using Done = std::function<void(const Reply* reply)>;
  void Run(std::string_view command, Done done);

  [[nodiscard]] bool up() const noexcept { return link_.up(); }
  /// Returns true if a command that must not stay without a reply may be sent: the connection is
  /// up, and the breaker would let a call through.
  [[nodiscard]] bool MaySendCommand() noexcept { return up() && Accepts(Clock::now()); }
  [[nodiscard]] bool idle() const noexcept { return queue_.empty() && sent_.empty(); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return link_.endpoint(); }
  [[nodiscard]] Breaker::State breaker() const noexcept { return breaker_.state(); }
  /// When it was last given something to do.
  [[nodiscard]] Clock::time_point used_at() const noexcept { return used_at_; }

  /// The end of the reactor's round in which something came.
  void OnReady(std::uint32_t events) override;

 private:
  /// What a reply is waited for.
  struct Sent {
    std::unique_ptr<Batch> batch;  ///< nullptr: a command.
    Done done;                     ///< Of a command.
    Clock::time_point at;
    bool ends_round = false;
  };
  /// What the replies of a round say of the node.
  enum class Health : std::uint8_t { kUnknown, kGood, kBad };

  // Link::Listener
  void OnLinkUp(const Greeting& greeting) override;
  void OnLinkReply(const Reply& reply) override;
  void OnLinkPush(const Reply& push) override;
  void OnLinkDown(ErrorKind kind, const std::string& problem) override;
  void OnTimer(net::Timer::Clock::time_point now) override;

  [[nodiscard]] bool Accepts(Clock::time_point now) noexcept;
  /// Whether a call that came now would hardly be answered by its deadline.
  [[nodiscard]] bool WouldBeTooLate() const noexcept;
  /// Without a reply for so long a connection is dead, whatever TCP thinks.
  [[nodiscard]] Clock::duration Patience() const noexcept;
  void Place(Call& call, Slot slot, bool single);
  void PutBack(std::unique_ptr<Batch> batch);
  /// The next round may leave.
  [[nodiscard]] bool MaySend() const noexcept;
  void SendWhatMay();
  void SendRound(Round& round);
  void Write(std::unique_ptr<Batch> batch, Batch::Form form, bool ends_round);
  void OnBatchReply(Sent sent, const Reply& reply);
  void OnBatchError(Sent sent, std::string_view error);
  void Note(Health health) noexcept;
  void EndRound();
  void FailAll(Batch& batch, Reason reason, Executed executed);
  /// Fails the calls that were not sent.
  void FailQueued(Reason reason);
  void FailEverything(Reason reason);
  void WatchStall(Clock::time_point now);
  void NoteBreaker();
  void Arm();

  net::Reactor& reactor_;
  const Options options_;
  BatchPool& batches_;
  ClientStats& stats_;
  Listener& listener_;
  Link link_;
  Backoff backoff_;
  Breaker breaker_;
  std::string sha_;
  bool told_ = false;
  bool loading_ = false;  ///< The script is on its way.
  bool stopped_ = true;
  bool reading_ = false;              ///< Calls are being finished: what they start waits.
  std::deque<Round> queue_;           ///< The last one takes new calls.
  std::deque<Sent> sent_;             ///< In the order of their replies.
  std::size_t under_way_ = 0;         ///< Rounds.
  Health health_ = Health::kUnknown;  ///< Of the round whose replies are coming in.
  Clock::duration usual_latency_{0};  ///< Of a batch.
  Clock::time_point hold_until_{};    ///< A retry waits; nothing overtakes it.
  Clock::time_point reconnect_at_{};
  Clock::time_point up_since_{};
  Clock::time_point stall_at_{};  ///< When the oldest round under way counts as a failure again.
  Clock::time_point used_at_{};
  Breaker::State noted_ = Breaker::State::kClosed;
};

}  // namespace tidegate::redis

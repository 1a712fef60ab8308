// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/call.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/breaker.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/link.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate::redis {

class Client;

/// Batches that are sent to one node together: one where there are no slots, else one for each
/// slot.
class Round {
 public:
  /// Returns the batch that may take `call`, or nullptr.
  [[nodiscard]] Batch* Find(const Call& call, Slot slot, bool single) const {
    const std::uint64_t hash = single ? call.record.request[0] : slot;
    const auto number = places_.Find(hash, batches_.size(), [&](auto at) {
      const Batch& batch = *batches_[at];
      return batch.slot() == slot && batch.single() == single && (!single || batch.Asks(call));
    });
    return number == PlaceIndex::kNone ? nullptr : batches_[number].get();
  }
  /// REQUIRES: not full. `batch` holds one call.
  void Add(std::unique_ptr<Batch> batch) {
    entries_ += batch->entries();
    batches_.push_back(std::move(batch));
    places_.Add(static_cast<std::uint32_t>(batches_.size() - 1),
                [this](auto number) { return batches_[number]->hash(); });
  }
  /// Adds a batch that was sent before, and takes no more calls.
  void AddAgain(std::unique_ptr<Batch> batch) {
    again_ = true;
    batches_.push_back(std::move(batch));
  }

  /// Counts entries that were added to one of its batches.
  void Grow(std::size_t entries) noexcept { entries_ += entries; }
  /// Returns true if no new entry fits.
  [[nodiscard]] bool full() const noexcept {
    return again_ || entries_ >= Batch::kMostEntries ||
           (batches_.size() == 1 && batches_.front()->full());
  }
  /// Returns true if its batches were sent before.
  [[nodiscard]] bool again() const noexcept { return again_; }
  [[nodiscard]] std::vector<std::unique_ptr<Batch>>& batches() noexcept { return batches_; }

 private:
  std::vector<std::unique_ptr<Batch>> batches_;
  std::size_t entries_ = 0;
  bool again_ = false;
  PlaceIndex places_{2 * Batch::kMostEntries};
};

/// The client of one Redis, of one reactor: group commit.
///
/// If no round is in flight, one is sent at the end of the reactor's round in which its first call
/// came; otherwise when the one in flight is answered, with all calls that came meanwhile. A second
/// one is sent earlier only if it is full. So nothing waits for a timer, and under load Redis's
/// work grows with distinct keys, not with calls.
///
/// Every call that it takes is handed back exactly once, answered or failed, or leaves with its
/// batch for another node. What was sent and not answered is never sent again.
class Node final : public net::Watcher, private Link::Listener, private net::Timer {
 public:
  using Clock = std::chrono::steady_clock;

  /// A part of `client`, whose reactor, options, batches and counters it uses.
  Node(Client& client, const Link::Options& link);

  /// Connects, and keeps connecting. On the reactor's thread, as everything here.
  void Start() {
    stopped_ = false;
    link_.Open();
  }
  /// Fails all waiting calls and closes the connection, for good.
  void Stop();
  /// Moves the batches that were not sent to `other`, then stops as Stop does.
  void StopFor(Node& other);

  /// `single`: in a batch of equal calls only. Returns false if the call fails, for that reason.
  [[nodiscard]] bool Take(Call& call, Slot slot, bool single, Reason& reason);
  /// Takes a batch that was sent to another node, which executed nothing of it.
  void Take(std::unique_ptr<Batch> batch);
  /// Runs a command beside the batches; `done` gets the reply, or nullptr without a connection.
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

  /// Called at the end of the reactor's round in which a call came.
  void OnReady(std::uint32_t) override { SendWhatMay(); }

 private:
  static constexpr std::size_t kMostUnderWay = 2;  ///< Rounds.

  /// A batch or a command whose reply has not come.
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
  /// Returns true if a call that came now would hardly be answered by its deadline.
  [[nodiscard]] bool WouldBeTooLate() const noexcept;
  /// Without a reply for so long a connection is dead, whatever TCP thinks.
  [[nodiscard]] Clock::duration Patience() const noexcept;
  void Place(Call& call, Slot slot, bool single);
  void PutBack(std::unique_ptr<Batch> batch) {
    if (queue_.empty() || !queue_.front().again()) queue_.emplace_front();
    queue_.front().AddAgain(std::move(batch));
  }
  [[nodiscard]] bool MaySend() const noexcept {
    if (under_way_ == 0) return true;
    return under_way_ < kMostUnderWay && (queue_.size() > 1 || queue_.back().full());
  }
  void SendWhatMay();
  void SendRound(Round& round);
  void Write(std::unique_ptr<Batch> batch, Batch::Form form, bool ends_round);
  void OnBatchReply(Sent sent, const Reply& reply);
  void OnBatchError(Sent sent, std::string_view error);
  /// One good reply shows that the node is well, whatever the others say.
  void Note(Health health) noexcept {
    if (health_ != Health::kGood) health_ = health;
  }
  void EndRound();
  void Fail(std::unique_ptr<Batch> batch, Reason reason, Executed executed);
  /// Fails the calls that were not sent.
  void FailQueued(Reason reason);
  void FailEverything(Reason reason);
  void WatchStall(Clock::time_point now);
  void NoteBreaker();
  void Arm();

  Client& client_;
  Link link_;
  Backoff backoff_;
  Breaker breaker_;
  std::string sha_;
  bool subscribed_ = false;
  bool loading_ = false;  ///< SCRIPT LOAD was sent.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/backoff.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/breaker.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/key_names.hpp"
#include "store/redis/link.hpp"
#include "store/redis/redis_error.hpp"
#include "tidegate/call.hpp"

namespace tidegate::redis {

/// One reactor's way to one Redis: group commit.
///
/// A batch leaves at the end of the round in which its first call came, if none is under way;
/// else as soon as the one under way is answered, with all that have come meanwhile. A second one
/// is sent before that only if it is full. So nothing waits for a timer, and under load Redis's
/// work grows with distinct keys, not with calls.
///
/// Every call submitted is handed back exactly once, answered or failed, by its deadline. What was
/// sent and not answered is never sent again.
class Client final : private Link::Listener, private net::Timer, private net::Watcher {
 public:
  using Clock = std::chrono::steady_clock;

  class Listener {
   public:
    /// `sent`: when the batch left; whatever Redis told was not true before.
    virtual void OnAnswered(Call& call, Clock::time_point sent) = 0;
    virtual void OnFailed(Call& call, Reason reason) = 0;
    /// A key was given something back; empty: anything may have been.
    virtual void OnInvalidated(std::string_view key) = 0;
    /// A new connection that tells of such things, or one that may not.
    virtual void OnSubscribed(bool subscribed) = 0;
    /// Something that people should know; said again and again while it lasts.
    enum class Notice : std::uint8_t { kUp, kDown, kError, kHealed, kFailedWrites };
    virtual void OnNotice(Notice notice, ErrorKind kind, std::string_view text) = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    RedisUrl url;
    std::string prefix = "tg:";
    std::chrono::microseconds deadline = std::chrono::milliseconds{20};
    std::chrono::microseconds connect_timeout = std::chrono::milliseconds{250};
    std::size_t most_waiting = 20'000;
    std::string name = "tidegate";
  };

  Client(net::Reactor& reactor, const Options& options, const Fingerprinter& fingerprinter,
         Listener& listener);
  ~Client() override;

  /// Connects, and keeps connecting. On the reactor's thread, as everything here.
  void Start();
  /// Fails all that wait and closes the connection, for good.
  void Stop();

  /// REQUIRES: a checked call whose `record.request` is set.
  void Submit(Call& call);
  /// Runs a command beside the batches, once connected; `done` gets the reply, or nothing.
  using Done = std::function<void(const Reply* reply)>;
  void Run(std::string_view command, Done done);

  [[nodiscard]] bool ready() const noexcept { return link_.up(); }
  [[nodiscard]] const KeyNames& names() const noexcept { return names_; }
  /// Calls that are not answered yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  [[nodiscard]] const ClientStats& stats() const noexcept { return stats_; }
  /// What went wrong with the connection last, for people; empty: nothing.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  /// What a reply is waited for.
  struct Sent {
    std::unique_ptr<Batch> batch;  ///< nullptr: a command.
    Done done;                     ///< Of a command.
    Clock::time_point at;
  };
  // Link::Listener
  void OnLinkUp(const Greeting& greeting) override;
  void OnLinkReply(const Reply& reply) override;
  void OnLinkPush(const Reply& push) override;
  void OnLinkDown(ErrorKind kind, const std::string& problem) override;
  void OnTimer(net::Timer::Clock::time_point now) override;
  /// The end of a round in which something came.
  void OnReady(std::uint32_t events) override;

  [[nodiscard]] bool Accepts(Clock::time_point now) noexcept;
  /// Whether a call that came now would hardly be answered by its deadline.
  [[nodiscard]] bool WouldBeTooLate() const noexcept;
  /// Without a reply for so long a connection is dead, whatever TCP thinks.
  [[nodiscard]] Clock::duration Patience() const noexcept;
  [[nodiscard]] std::unique_ptr<Batch> NewBatch();
  void Recycle(std::unique_ptr<Batch> batch);
  void Enqueue(Call& call, Clock::time_point now);
  void Unlink(Call& call) noexcept;
  void SendWhatMay();
  void Send(std::unique_ptr<Batch> batch, Batch::Form form);
  void OnBatchReply(Sent sent, const Reply& reply);
  void OnBatchError(Sent sent, std::string_view error);
  void FailAll(Batch& batch, Reason reason);
  void FailOverdue(Clock::time_point now);
  void FailQueued(Reason reason);
  void FailEverything(Reason reason);
  void WatchStall(Clock::time_point now);
  void Arm();
  void NoteState() noexcept;

  net::Reactor& reactor_;
  const Options options_;
  const Fingerprinter& fingerprinter_;
  Listener& listener_;
  const KeyNames names_;
  const std::string channel_;
  Link link_;
  Backoff backoff_;
  Breaker breaker_;
  std::string sha_;
  std::string problem_;
  bool stopped_ = false;
  bool reading_ = false;                      ///< Calls are being finished: what they start waits.
  std::deque<std::unique_ptr<Batch>> queue_;  ///< The last one takes new calls.
  std::deque<Sent> sent_;                     ///< In the order of their replies.
  std::vector<std::unique_ptr<Batch>> spare_;
  std::size_t batches_under_way_ = 0;
  Call* first_ = nullptr;  ///< Of those that wait, the one with the earliest deadline.
  Call* last_ = nullptr;
  std::size_t waiting_ = 0;
  Clock::duration usual_latency_{0};  ///< Of a batch.
  Clock::time_point hold_until_{};    ///< A retry waits; nothing overtakes it.
  Clock::time_point reconnect_at_{};
  Clock::time_point up_since_{};
  Clock::time_point stall_at_{};  ///< When the oldest batch under way counts as a failure again.
  ClientStats stats_;
};

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "net/deadlines.hpp"
#include "net/descriptor.hpp"
#include "net/http_date.hpp"
#include "net/http_exchange.hpp"
#include "net/out_buffer.hpp"
#include "net/timer.hpp"

namespace tidegate::net {

class HttpConnection;

/// Something with a descriptor that a reactor waits for.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// `events` are epoll's. Edge-triggered: read and write until the system says that it would
  /// block.
  virtual void OnReady(std::uint32_t events) = 0;

 private:
  friend class Reactor;
  bool again_ = false;  ///< It stands in the list for the next round.
};

/// One thread with one event loop (epoll), and what its connections share. Everything on it is
/// touched by its own thread only, but for Post and Stop.
class Reactor {
 public:
  explicit Reactor(const Deadlines::Durations& deadlines);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  /// Runs the loop on the calling thread until Stop. `core`: pinned to it where given.
  void Run(std::optional<int> core);
  /// Ends Run. Thread-safe.
  void Stop();
  /// Runs `task` on the reactor's thread, soon. Thread-safe.
  void Post(std::function<void()> task);

  /// Tells `watcher` of everything that happens to `fd`, until that is closed, or watched by
  /// another one.
  [[nodiscard]] bool Watch(int fd, Watcher& watcher) noexcept;
  /// Calls OnReady(0) in the next round, for a watcher that has more to do but gives way to others.
  void Again(Watcher& watcher) {
    if (!std::exchange(watcher.again_, true)) again_.push_back(&watcher);
  }
  /// Deletes `watcher` when nothing of the current round can refer to it any more.
  void Bury(Watcher* watcher);

  /// Several things happened at once in this round.
  [[nodiscard]] bool crowded() const noexcept { return events_ > 1; }
  /// When this round of the loop began: good enough for deadlines, and free.
  [[nodiscard]] Deadlines::Clock::time_point now() const noexcept { return now_; }
  [[nodiscard]] Deadlines& deadlines() noexcept { return deadlines_; }
  [[nodiscard]] Timers& timers() noexcept { return timers_; }
  [[nodiscard]] HttpDate& date() noexcept { return date_; }
  /// Where answers are put together before they are sent: between two waits, and by one
  /// connection at a time, its owner.
  [[nodiscard]] OutBuffer& out() noexcept { return out_; }
  [[nodiscard]] HttpConnection*& out_owner() noexcept { return out_owner_; }
  [[nodiscard]] HttpExchangePool& exchanges() noexcept { return exchanges_; }

 private:
  static constexpr std::size_t kEvents = 128;

  [[nodiscard]] int Timeout() const noexcept;
  void RunTasks();
  void RunAgain();
  void DeleteBuried();

  Descriptor epoll_;
  Descriptor wake_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  ///< Guarded by mutex_.
  Deadlines::Clock::time_point now_ = Deadlines::Clock::now();
  Deadlines deadlines_;
  Timers timers_;
  HttpDate date_;
  OutBuffer out_;
  HttpConnection* out_owner_ = nullptr;
  HttpExchangePool exchanges_;
  std::vector<Watcher*> again_;
  std::vector<Watcher*> running_;  ///< Those that are being called: its memory is used again.
  int events_ = 0;                 ///< Of this round.
  std::vector<Watcher*> buried_;
};

}  // namespace tidegate::net

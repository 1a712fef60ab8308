// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "net/descriptor.hpp"
#include "net/timer.hpp"

namespace tidegate::net {

/// Receives the events of a descriptor.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Called with epoll's events, or with 0 after Again. The events are edge-triggered: read and
  /// write until that would block.
  virtual void OnReady(std::uint32_t events) = 0;
  /// Returns the events of this round that OnReady has not been called for yet.
  [[nodiscard]] std::uint32_t pending_events() const noexcept { return pending_events_; }

 private:
  friend class Reactor;
  std::uint32_t pending_events_ = 0;
  bool again_ = false;  ///< The watcher is in the list for the next round.
};

/// One thread with one epoll loop and its timers. Only Post and Stop are thread-safe.
class Reactor {
 public:
  explicit Reactor(const Deadlines::Durations& deadlines);
  ~Reactor();

  /// Runs the loop on the calling thread until Stop, on the CPU `core` if it is given.
  void Run(std::optional<int> core);
  /// Ends Run. Thread-safe.
  void Stop() {
    stopped_ = true;
    Wake();
  }
  /// Runs `task` on the reactor's thread, soon. Thread-safe.
  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    Wake();
  }

  /// Reports all events of `fd` to `watcher`, until `fd` is closed or given to another watcher.
  [[nodiscard]] bool Watch(int fd, Watcher& watcher) noexcept;
  /// Calls OnReady(0) in the next round, for a watcher that lets others go first.
  void Again(Watcher& watcher) {
    if (!std::exchange(watcher.again_, true)) again_.push_back(&watcher);
  }
  /// Deletes `watcher` at the end of the round, when no event can refer to it any more.
  void Bury(Watcher* watcher) {
    if (watcher->again_) std::erase(again_, watcher);
    buried_.push_back(watcher);
  }

  /// Returns true if this round has more than one event.
  [[nodiscard]] bool crowded() const noexcept { return events_ > 1; }
  /// Returns the number of this round.
  [[nodiscard]] std::uint64_t round() const noexcept { return round_; }
  /// Returns the time at which this round began: good enough for deadlines, and free.
  [[nodiscard]] Deadlines::Clock::time_point now() const noexcept { return now_; }
  [[nodiscard]] Deadlines& deadlines() noexcept { return deadlines_; }
  [[nodiscard]] Timers& timers() noexcept { return timers_; }

 private:
  static constexpr std::size_t kEvents = 128;

  using Events = std::array<epoll_event, kEvents>;

  /// Returns how long to wait for events; nothing if there is no limit.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> Timeout() const noexcept;
  [[nodiscard]] int Wait(Events& events) noexcept;
  /// Makes Wait return. Thread-safe.
  void Wake() noexcept;
  void RunTasks();
  void RunAgain();
  void DeleteBuried() {
    while (!buried_.empty()) {
      // A destructor may bury other watchers.
      const std::vector<Watcher*> buried = std::exchange(buried_, {});
      for (Watcher* const watcher : buried) delete watcher;
    }
  }

  Descriptor epoll_;
  Descriptor wake_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  ///< Guarded by mutex_.
  Deadlines::Clock::time_point now_ = Deadlines::Clock::now();
  Deadlines deadlines_;
  Timers timers_;
  std::vector<Watcher*> again_;
  std::vector<Watcher*> running_;  ///< Used by RunAgain; a member so that its memory is reused.
  int events_ = 0;                 ///< Number of events of this round.
  std::uint64_t round_ = 0;
  bool has_pwait2_ = true;  ///< The kernel has epoll_pwait2 (Linux 5.11).
  std::vector<Watcher*> buried_;
};

}  // namespace tidegate::net

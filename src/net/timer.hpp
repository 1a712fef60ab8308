// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace tidegate::net {

class Timers;

/// A precise timer: never early, and late by some tens of microseconds, or by up to a millisecond
/// without epoll_pwait2. For few objects; thousands of connections use Deadlines, which cost less.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Timer(Timers& timers);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer();

  /// Calls OnTimer once, at `due` or soon after. Replaces an earlier time.
  void ArmAt(Clock::time_point due) noexcept { due_ = due; }
  void Disarm() noexcept { due_.reset(); }
  [[nodiscard]] bool armed() const noexcept { return due_.has_value(); }

 protected:
  virtual void OnTimer(Clock::time_point now) = 0;

 private:
  friend class Timers;
  Timers& timers_;
  std::optional<Clock::time_point> due_;
};

/// All timers of one reactor. They are few, so searching a list is fastest.
class Timers {
 public:
  [[nodiscard]] std::optional<Timer::Clock::time_point> Next() const noexcept {
    std::optional<Timer::Clock::time_point> next;
    for (const Timer* const timer : all_) {
      if (timer->due_ && (!next || *timer->due_ < *next)) next = timer->due_;
    }
    return next;
  }

  /// Calls all timers that are due.
  void Run(Timer::Clock::time_point now) {
    // The loop uses an index, because a timer that is called may add or remove timers.
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Timer& timer = *all_[i];
      if (!timer.due_ || *timer.due_ > now) continue;
      timer.due_.reset();
      timer.OnTimer(now);
    }
  }

 private:
  friend class Timer;
  std::vector<Timer*> all_;
};

inline Timer::Timer(Timers& timers) : timers_(timers) { timers_.all_.push_back(this); }
inline Timer::~Timer() { std::erase(timers_.all_, this); }

/// The coarse timers of one reactor: never early, and at most some tens of milliseconds late. There
/// is a list for each duration, so that arming and disarming change a few pointers, and the
/// earliest deadline is at the front of a list.
class Deadlines {
 public:
  /// The kinds that every reactor has; KindFor adds more.
  enum class Kind : std::uint8_t { kIdle, kHeader, kBody, kWrite, kLinger };
  static constexpr std::size_t kKinds = 5;
  static constexpr std::size_t kMostKinds = 64;
  using Clock = std::chrono::steady_clock;
  using Durations = std::array<Clock::duration, kKinds>;

  /// An object that can have one deadline at a time. Its destructor disarms it.
  class Node {
   public:
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual void OnDeadline(Kind kind) = 0;

   protected:
    ~Node() = default;

   private:
    friend class Deadlines;
    using Hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

    Hook hook_;
    Clock::time_point due_{};
  };

  explicit Deadlines(const Durations& durations) noexcept;

  /// Returns the kind for a duration; if kMostKinds are in use, the kind of the next longer
  /// duration, or of the longest. Arm a node with it at once, because an unused kind is given to
  /// the next duration.
  [[nodiscard]] Kind KindFor(Clock::duration duration) noexcept;
  void Arm(Node& node, Kind kind, Clock::time_point now = Clock::now()) noexcept;
  static void Disarm(Node& node) noexcept { node.hook_.unlink(); }
  [[nodiscard]] static bool IsArmed(const Node& node) noexcept { return node.hook_.is_linked(); }

  /// Calls OnDeadline of all nodes that are due.
  void Run(Clock::time_point now);
  /// Returns the time at which the next deadline is due; nothing if there is no deadline.
  [[nodiscard]] std::optional<Clock::time_point> Next() const noexcept;

 private:
  using List =
      boost::intrusive::list<Node, boost::intrusive::member_hook<Node, Node::Hook, &Node::hook_>,
                             boost::intrusive::constant_time_size<false>>;

  std::array<Clock::duration, kMostKinds> durations_{};
  std::array<List, kMostKinds> lists_;
  std::size_t kinds_ = kKinds;
};

}  // namespace tidegate::net

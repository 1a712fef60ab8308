// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tidegate::net {

/// The coarse timers of one reactor: a list per kind, in which all wait equally long, so that
/// arming and disarming are a few pointers and the earliest of all stands at the front of a list. A
/// deadline is never early, and late by little; idle connections cost nothing until the first of
/// them is due.
class Deadlines {
 public:
  /// Those that every reactor has; KindFor makes more.
  enum class Kind : std::uint8_t { kIdle, kHeader, kBody, kWrite, kLinger };
  static constexpr std::size_t kKinds = 5;
  static constexpr std::size_t kMostKinds = 64;
  using Clock = std::chrono::steady_clock;
  using Durations = std::array<Clock::duration, kKinds>;

  /// What can have one deadline at a time. Disarms itself when it goes.
  class Node {
   public:
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual void OnDeadline(Kind kind) = 0;

   protected:
    ~Node() { Unlink(); }

   private:
    friend class Deadlines;
    void Unlink() noexcept;

    Node* previous_ = nullptr;
    Node* next_ = nullptr;
    Clock::time_point due_{};
  };

  explicit Deadlines(const Durations& durations) noexcept;

  /// The kind of those that wait for so long: one for each duration in use, as long as there is
  /// room for more; then the next longer one, or the longest. For arming at once: a kind that
  /// nobody waits by is given to the next duration.
  [[nodiscard]] Kind KindFor(Clock::duration duration) noexcept;
  void Arm(Node& node, Kind kind, Clock::time_point now = Clock::now()) noexcept;
  static void Disarm(Node& node) noexcept { node.Unlink(); }
  [[nodiscard]] static bool IsArmed(const Node& node) noexcept { return node.next_ != nullptr; }

  /// Calls all that are due.
  void Run(Clock::time_point now);
  /// When the next one is due; nothing: there is none.
  [[nodiscard]] std::optional<Clock::time_point> Next() const noexcept;

 private:
  struct List final : Node {
    void OnDeadline(Kind) override {}
  };

  std::array<Clock::duration, kMostKinds> durations_{};
  std::array<List, kMostKinds> lists_;
  std::size_t kinds_ = kKinds;
};

}  // namespace tidegate::net

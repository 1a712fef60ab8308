// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>

namespace tidegate::net {

/// The coarse timers of one reactor: a list per kind, in which all wait equally long, so that
/// arming and disarming are a few pointers, and one Asio timer for the earliest of all. A deadline is
/// never early and late by little; idle connections cost nothing until the first of them is due.
class Deadlines {
 public:
  enum class Kind : std::uint8_t { kIdle, kHeader, kBody, kWrite, kLinger };
  static constexpr std::size_t kKinds = 5;
  using Duration = std::chrono::steady_clock::duration;
  using Moment = std::chrono::steady_clock::time_point;

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
    Moment due_{};
  };

  Deadlines(boost::asio::io_context& context, const std::array<Duration, kKinds>& durations);

  void Arm(Node& node, Kind kind);
  void Disarm(Node& node) noexcept { node.Unlink(); }
  [[nodiscard]] static bool IsArmed(const Node& node) noexcept { return node.next_ != nullptr; }

 private:
  struct List final : Node {
    void OnDeadline(Kind) override {}
  };
  void Run();
  void Schedule(Moment due);
  [[nodiscard]] Moment Earliest() const noexcept;

  std::array<Duration, kKinds> durations_;
  std::array<List, kKinds> lists_;
  boost::asio::steady_timer timer_;
  Moment scheduled_ = Moment::max();
};

}  // namespace tidegate::net

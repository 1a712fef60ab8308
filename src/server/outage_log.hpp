// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tidegate {

/// Logs outages of Redis for the whole process: one line when failure policies take over, one line
/// a minute while the outage lasts, and one line when Redis decides again, with the duration and
/// the number of decisions of each policy. Every decision of a failure policy is in exactly one
/// outage, except for those that a server makes while it stops.
///
/// An outage begins with a decision by a failure policy, or when a connection to Redis is missing.
/// It ends after `kQuiet` without either. An outage that begins within a minute after another needs
/// twice the quiet time of that one, at most a minute, so that a Redis that fails every few seconds
/// does not fill the log. Takes the time from its caller. Not thread-safe.
class OutageLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{1};
  static constexpr std::chrono::minutes kBetweenLines{1};

  /// Numbers of decisions or of rules, by failure policy.
  struct ByPolicy {
    std::uint64_t open = 0;
    std::uint64_t closed = 0;
    std::uint64_t local = 0;
    friend bool operator==(const ByPolicy&, const ByPolicy&) = default;
  };
  /// The state of Redis as all reactors together see it.
  struct State {
    std::uint64_t connected = 0;  ///< Connections to Redis.
    std::uint64_t nodes = 0;      ///< Connections that there should be; 0: not known yet.
    ByPolicy decisions = {};      ///< Made by failure policies since the start.
    std::string error = {};       ///< Why Redis does not decide; empty: it does.
  };

  /// `rules` returns the number of rules that have each policy; it is called when an outage begins.
  explicit OutageLog(std::function<ByPolicy()> rules) : rules_(std::move(rules)) {}

  /// Call it several times a second.
  void Observe(const State& state, Clock::time_point now);
  /// Ends an outage that lasts, because the process stops.
  void Stop(const State& state, Clock::time_point now);

 private:
  void Begin(const State& state, Clock::time_point now);
  /// Decisions of failure policies since the outage began.
  [[nodiscard]] ByPolicy Decided(const State& state) const noexcept;
  void LogLasting(const char* message, const State& state, Clock::time_point until) const;

  const std::function<ByPolicy()> rules_;
  bool outage_ = false;
  ByPolicy seen_;    ///< Decisions at the last Observe.
  ByPolicy before_;  ///< Decisions before the outage.
  Clock::time_point began_{};
  Clock::time_point next_line_{};
  Clock::duration quiet_{kQuiet};
  std::optional<Clock::time_point> well_since_;  ///< In an outage: nothing has failed since.
  std::optional<Clock::time_point> ended_;       ///< The last outage.
};

}  // namespace tidegate

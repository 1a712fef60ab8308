// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "net/timer.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate {

class Server;

/// Logs outages of Redis: one line when failure policies take over, one line a minute during the
/// outage, and one line when Redis decides again, with the duration and the decisions of each
/// policy. Each decision by a policy is in exactly one outage, except during the stop of a server.
///
/// An outage begins with a decision by a failure policy, or when a connection to Redis is missing.
/// It ends after a quiet time, `kQuiet`, without such a decision or missing connection. If an
/// outage begins within a minute after another, its quiet time is twice that of the other, at most
/// a minute, so that a Redis that fails every few seconds does not fill the log. The caller passes
/// the time. Not thread-safe.
class OutageLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{1};
  static constexpr std::chrono::minutes kBetweenLines{1};

  /// The number of decisions, or of rules, for each failure policy.
  struct ByPolicy {
    std::uint64_t open = 0;
    std::uint64_t closed = 0;
    std::uint64_t local = 0;
    friend bool operator==(const ByPolicy&, const ByPolicy&) = default;
  };
  /// The state of Redis as all reactors together see it.
  struct State {
    std::uint64_t connected = 0;  ///< Connections to Redis.
    std::uint64_t nodes = 0;      ///< Connections that are needed; 0: not known yet.
    ByPolicy decisions = {};      ///< Decisions by failure policies since the start.
    std::string error = {};       ///< The reason why Redis does not decide; empty: it does.
  };

  /// `rules` returns the number of rules that have each policy; it is called when an outage begins.
  explicit OutageLog(std::function<ByPolicy()> rules) : rules_(std::move(rules)) {}

  /// Begins, continues or ends an outage as `state` shows. Must be called several times a second.
  void Observe(const State& state, Clock::time_point now);
  /// Ends an outage that is in progress, because the process stops.
  void Stop(const State& state, Clock::time_point now);

 private:
  void Begin(const State& state, Clock::time_point now);
  void LogLasting(const char* message, const State& state, Clock::time_point until) const;

  const std::function<ByPolicy()> rules_;
  bool outage_ = false;
  ByPolicy seen_;    ///< Decisions at the last Observe.
  ByPolicy before_;  ///< Decisions before the outage.
  Clock::time_point began_{};
  Clock::time_point next_line_{};
  Clock::duration quiet_{kQuiet};
  /// Set in an outage: Redis has decided everything since then.
  std::optional<Clock::time_point> well_since_;
  std::optional<Clock::time_point> ended_;  ///< End of the last outage.
};

/// Observes the Redis clients of all reactors ten times a second for the OutageLog. Its timer runs
/// on the first reactor; the other reactors only count, which they do anyway.
class OutageWatch final : private net::Timer {
 public:
  static constexpr std::chrono::milliseconds kEvery{100};
  /// The time after the start in which a missing connection is not an outage, because connections
  /// are still being made.
  static constexpr std::chrono::seconds kStart{1};

  /// REQUIRES: the server has a fleet, and outlives this object.
  explicit OutageWatch(const Server& server);

  /// Reports an outage that is in progress. REQUIRES: the reactors have stopped.
  void Stop();

 private:
  void OnTimer(net::Timer::Clock::time_point now) override;
  [[nodiscard]] OutageLog::State StateNow() const;
  /// Returns the reasons of failures since the last call, such as `timeout, breaker_open`.
  [[nodiscard]] std::string NewReasons();
  [[nodiscard]] OutageLog::ByPolicy Rules() const;

  const Server& server_;
  OutageLog log_;
  std::array<std::uint64_t, redis::kReasons> reasons_{};  ///< Failures at the last NewReasons.
};

}  // namespace tidegate

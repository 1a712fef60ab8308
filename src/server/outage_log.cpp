// SPDX-License-Identifier: Apache-2.0
#include "server/outage_log.hpp"

#include <algorithm>

#include "telemetry/log.hpp"

namespace tidegate {

void OutageLog::Observe(const State& state, Clock::time_point now) {
  const bool disconnected = state.nodes == 0 || state.connected < state.nodes;
  const bool failing = disconnected || state.decisions != seen_;
  if (!outage_ && failing) Begin(state, now);
  seen_ = state.decisions;
  if (!outage_) return;
  if (failing) {
    well_since_.reset();
  } else if (!well_since_) {
    well_since_ = now;
  }
  if (well_since_ && now - *well_since_ >= quiet_) {
    outage_ = false;
    ended_ = now;
    return LogLasting("Redis answers all calls again", state, *well_since_);
  }
  if (now < next_line_) return;
  next_line_ = now + kBetweenLines;
  LogLasting("Redis still does not answer all calls; failure policies decide the rest", state, now);
}

void OutageLog::Begin(const State& state, Clock::time_point now) {
  const bool again = ended_ && now - *ended_ < kBetweenLines;
  quiet_ = again ? std::min<Clock::duration>(2 * quiet_, kBetweenLines) : kQuiet;
  outage_ = true;
  before_ = seen_;
  began_ = now;
  next_line_ = now + kBetweenLines;
  const ByPolicy rules = rules_();
  Log::Warning("Redis does not answer all calls; failure policies decide the rest",
               {{"rules_open", std::to_string(rules.open)},
                {"rules_closed", std::to_string(rules.closed)},
                {"rules_local", std::to_string(rules.local)},
                {"connected", std::to_string(state.connected)},
                {"nodes", std::to_string(state.nodes)},
                {"error", state.error}});
}

void OutageLog::Stop(const State& state, Clock::time_point now) {
  // A server that stops answers its waiting calls by policy; that alone is not an outage.
  if (!outage_) return;
  outage_ = false;
  LogLasting("stopping during an outage of Redis", state, well_since_.value_or(now));
}

OutageLog::ByPolicy OutageLog::Decided(const State& state) const noexcept {
  return {state.decisions.open - before_.open, state.decisions.closed - before_.closed,
          state.decisions.local - before_.local};
}

void OutageLog::LogLasting(const char* message, const State& state, Clock::time_point until) const {
  const ByPolicy decided = Decided(state);
  const auto lasted = std::chrono::round<std::chrono::milliseconds>(until - began_);
  Log::Warning(message, {{"lasted_ms", std::to_string(lasted.count())},
                         {"decisions_open", std::to_string(decided.open)},
                         {"decisions_closed", std::to_string(decided.closed)},
                         {"decisions_local", std::to_string(decided.local)},
                         {"connected", std::to_string(state.connected)},
                         {"nodes", std::to_string(state.nodes)}});
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "server/outage_log.hpp"

#include <algorithm>
#include <utility>

#include "server/server.hpp"
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
  // While a server stops, policies decide its waiting calls; that alone is not an outage.
  if (!outage_) return;
  outage_ = false;
  LogLasting("stopping during an outage of Redis", state, well_since_.value_or(now));
}

void OutageLog::LogLasting(const char* message, const State& state, Clock::time_point until) const {
  const ByPolicy& decided = state.decisions;
  const auto lasted = std::chrono::round<std::chrono::milliseconds>(until - began_);
  Log::Warning(message, {{"lasted_ms", std::to_string(lasted.count())},
                         {"decisions_open", std::to_string(decided.open - before_.open)},
                         {"decisions_closed", std::to_string(decided.closed - before_.closed)},
                         {"decisions_local", std::to_string(decided.local - before_.local)},
                         {"connected", std::to_string(state.connected)},
                         {"nodes", std::to_string(state.nodes)}});
}

OutageWatch::OutageWatch(const Server& server)
    : net::Timer(server.workers().front()->reactor.timers()),
      server_(server),
      log_([this] { return Rules(); }) {
  ArmAt(net::Timer::Clock::now() + kEvery);
}

void OutageWatch::OnTimer(net::Timer::Clock::time_point now) {
  // A server that stops closes its connections, which is not an outage.
  if (server_.stopping()) return;
  ArmAt(now + kEvery);
  OutageLog::State state = StateNow();
  if (server_.uptime() < kStart) {
    state.nodes = 1;
    state.connected = 1;
  }
  // If the connection has no problem, the reasons of failed calls say what is wrong.
  const std::string reasons = NewReasons();
  if (state.error.empty()) state.error = reasons;
  log_.Observe(state, now);
}

void OutageWatch::Stop() { log_.Stop(StateNow(), net::Timer::Clock::now()); }

OutageLog::State OutageWatch::StateNow() const {
  OutageLog::State state;
  for (const auto& worker : server_.workers()) {
    const redis::ClientStats& redis = worker->redis_store->redis_stats();
    state.connected += redis.connected.get();
    state.nodes += redis.nodes.get();
    const auto decided = [&](DecidedBy policy) {
      return worker->redis_store->stats().policy_decisions[static_cast<std::size_t>(policy)].get();
    };
    state.decisions.open += decided(DecidedBy::kOpen);
    state.decisions.closed += decided(DecidedBy::kClosed);
    state.decisions.local += decided(DecidedBy::kLocal);
  }
  // All reactors use the same Redis, so the first reactor's problem is that of all.
  state.error = server_.workers().front()->redis_store->client().problem();
  return state;
}

std::string OutageWatch::NewReasons() {
  std::string text;
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    std::uint64_t failures = 0;
    for (const auto& worker : server_.workers()) {
      for (const auto& policy : worker->redis_store->stats().failures)
        failures += policy[reason].get();
    }
    if (std::exchange(reasons_[reason], failures) == failures) continue;
    if (!text.empty()) text += ", ";
    text += redis::Name(static_cast<redis::Reason>(reason));
  }
  return text;
}

OutageLog::ByPolicy OutageWatch::Rules() const {
  OutageLog::ByPolicy rules;
  for (const Rule& rule : server_.admin_context().snapshot().rules->rules()) {
    ++(rule.on_failure == OnFailure::kOpen     ? rules.open
       : rule.on_failure == OnFailure::kClosed ? rules.closed
                                               : rules.local);
  }
  return rules;
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "server/outage_watch.hpp"

#include <utility>

#include "server/server.hpp"

namespace tidegate {

OutageWatch::OutageWatch(const Server& server)
    : net::Timer(server.workers().front()->reactor.timers()),
      server_(server),
      log_([this] { return Rules(); }) {
  ArmAt(net::Timer::Clock::now() + kEvery);
}

void OutageWatch::OnTimer(net::Timer::Clock::time_point now) {
  // A server that stops closes its connections.
  if (server_.stopping()) return;
  ArmAt(now + kEvery);
  OutageLog::State state = StateNow();
  if (server_.uptime() < kStart) {
    state.nodes = 1;
    state.connected = 1;
  }
  // Without a problem with the connection, the reasons of failed calls say what is wrong.
  const std::string reasons = NewReasons();
  if (state.error.empty()) state.error = reasons;
  log_.Observe(state, now);
}

void OutageWatch::Stop() { log_.Stop(StateNow(), net::Timer::Clock::now()); }

OutageLog::State OutageWatch::StateNow() const {
  OutageLog::State state;
  for (const auto& worker : server_.workers()) {
    const redis::ClientStats& redis = worker->guard->redis_stats();
    state.connected += redis.connected.get();
    state.nodes += redis.nodes.get();
    const GuardStats& stats = worker->guard->stats();
    const auto decided = [&](DecidedBy policy) {
      return stats.policy_decisions[static_cast<std::size_t>(policy)].get();
    };
    state.decisions.open += decided(DecidedBy::kOpen);
    state.decisions.closed += decided(DecidedBy::kClosed);
    state.decisions.local += decided(DecidedBy::kLocal);
  }
  // All reactors use the same Redis, so the first one's problem stands for all.
  state.error = server_.workers().front()->guard->client().problem();
  return state;
}

std::string OutageWatch::NewReasons() {
  std::string text;
  for (std::size_t reason = 0; reason < redis::kReasons; ++reason) {
    std::uint64_t failures = 0;
    for (const auto& worker : server_.workers()) {
      for (const auto& policy : worker->guard->stats().failures) failures += policy[reason].get();
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
    switch (rule.on_failure) {
      case OnFailure::kOpen:
        ++rules.open;
        break;
      case OnFailure::kClosed:
        ++rules.closed;
        break;
      case OnFailure::kLocal:
        ++rules.local;
        break;
    }
  }
  return rules;
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "store/redis/heartbeat.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/scripts.hpp"

namespace tidegate::redis {

Heartbeat::Heartbeat(net::Reactor& reactor, Client& client, Fleet& fleet, Options options)
    : net::Timer(reactor.timers()), client_(client), fleet_(fleet), options_(std::move(options)) {}

void Heartbeat::UseKey(std::string key_id, std::string secret) {
  options_.key_id = std::move(key_id);
  options_.secret = std::move(secret);
  // The others should not see the old one for long; nor may a Redis that tells another key each
  // time keep us busy.
  ArmAt(net::Timer::Clock::now() + kSoon);
}

void Heartbeat::OnTimer(net::Timer::Clock::time_point) { Beat(); }

std::string Heartbeat::Command(bool leaving) const {
  std::string command;
  const auto alive = std::chrono::microseconds{kAlive}.count();
  AppendCommand(command, {"EVAL", HeartbeatScript(), "2", client_.names().Nodes(),
                          client_.names().Secret(), options_.node, options_.key_id, options_.secret,
                          std::to_string(alive), leaving ? "1" : "0"});
  return command;
}

void Heartbeat::Beat() {
  // Without a connection: look again soon, so that a new node is known as soon as it can be.
  const bool able = !waiting_ && client_.ready(KeyNames::FleetSlot());
  ArmAt(net::Timer::Clock::now() + (able || waiting_ ? kEvery : kSoon));
  if (!able) return;
  waiting_ = true;
  client_.Run(KeyNames::FleetSlot(), Command(false), [this](const Reply* reply) {
    waiting_ = false;
    if (reply != nullptr) OnReply(*reply);
  });
}

void Heartbeat::Leave() {
  Disarm();
  client_.Run(KeyNames::FleetSlot(), Command(true), nullptr);
}

void Heartbeat::NoteNodes(std::int64_t live) {
  const auto now = net::Timer::Clock::now();
  live = std::min(live, kMostNodes);
  // After a pause Redis may have been emptied: what it knows begins anew.
  const bool paused = now - std::exchange(last_reply_, now) > 2 * kEvery;
  if (live >= fleet_.nodes || paused) {
    fewer_since_ = now;
    if (live < fleet_.nodes) return;
  } else if (now - fewer_since_ < kAlive) {
    return;
  }
  fleet_.nodes = live;
}

void Heartbeat::OnReply(const Reply& reply) {
  // Live nodes, those with another key, the fleet's key.
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 3 ||
      !reply.elements[0].is(Reply::Type::kInteger) ||
      !reply.elements[1].is(Reply::Type::kInteger)) {
    return;
  }
  NoteNodes(std::max<std::int64_t>(1, reply.elements[0].integer));
  fleet_.strangers = reply.elements[1].integer;
  ++fleet_.heartbeats;
  const std::string_view secret = reply.elements[2].text;
  if (options_.secret.empty() || secret.empty()) return;
  if (secret == options_.secret) return options_.on_agreed();
  options_.on_secret(std::string(secret));
}

}  // namespace tidegate::redis

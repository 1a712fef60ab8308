// SPDX-License-Identifier: Apache-2.0
#include "net/timer.hpp"

#include <algorithm>

namespace tidegate::net {

Deadlines::Deadlines(const Durations& durations) noexcept {
  std::ranges::copy(durations, durations_.begin());
}

Deadlines::Kind Deadlines::KindFor(Clock::duration duration) noexcept {
  // The search begins at kKinds, because the kinds before it have fixed meanings for OnDeadline.
  std::size_t best = kKinds;
  std::size_t unused = kMostKinds;
  for (std::size_t kind = kKinds; kind < kinds_; ++kind) {
    if (durations_[kind] == duration) return static_cast<Kind>(kind);
    if (lists_[kind].empty()) unused = std::min(unused, kind);
    const bool longer = durations_[kind] > duration;
    const bool nearer = durations_[best] < duration ? durations_[kind] > durations_[best]
                                                    : durations_[kind] < durations_[best];
    if (nearer && (longer || durations_[best] < duration)) best = kind;
  }
  if (unused == kMostKinds && kinds_ == kMostKinds) return static_cast<Kind>(best);
  if (unused == kMostKinds) unused = kinds_++;
  durations_[unused] = duration;
  return static_cast<Kind>(unused);
}

void Deadlines::Arm(Node& node, Kind kind, Clock::time_point now) noexcept {
  Disarm(node);
  node.due_ = now + durations_[static_cast<std::size_t>(kind)];
  lists_[static_cast<std::size_t>(kind)].push_back(node);
}

std::optional<Deadlines::Clock::time_point> Deadlines::Next() const noexcept {
  std::optional<Clock::time_point> next;
  for (std::size_t kind = 0; kind < kinds_; ++kind) {
    if (lists_[kind].empty()) continue;
    const Clock::time_point due = lists_[kind].front().due_;
    next = next ? std::min(*next, due) : due;
  }
  return next;
}

void Deadlines::Run(Clock::time_point now) {
  for (std::size_t kind = 0; kind < kinds_; ++kind) {
    List& list = lists_[kind];
    // Nodes that are armed again during this loop come after `last`.
    const Node* const last = list.empty() ? nullptr : &list.back();
    while (!list.empty() && list.front().due_ <= now) {
      Node& node = list.front();
      const bool was_last = &node == last;
      Disarm(node);
      node.OnDeadline(static_cast<Kind>(kind));
      if (was_last) break;
    }
  }
}

}  // namespace tidegate::net

// SPDX-License-Identifier: Apache-2.0
#include "net/timer.hpp"

#include <algorithm>

namespace tidegate::net {

void Deadlines::Node::Unlink() noexcept {
  if (next_ == nullptr) return;
  previous_->next_ = next_;
  next_->previous_ = previous_;
  next_ = previous_ = nullptr;
}

Deadlines::Deadlines(const Durations& durations) noexcept {
  std::ranges::copy(durations, durations_.begin());
  for (List& list : lists_) list.next_ = list.previous_ = &list;
}

Deadlines::Kind Deadlines::KindFor(Clock::duration duration) noexcept {
  // The search begins at kKinds, because the kinds before it have fixed meanings for OnDeadline.
  std::size_t best = kKinds;
  std::size_t unused = kMostKinds;
  for (std::size_t kind = kKinds; kind < kinds_; ++kind) {
    if (durations_[kind] == duration) return static_cast<Kind>(kind);
    if (lists_[kind].next_ == &lists_[kind]) unused = std::min(unused, kind);
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
  node.Unlink();
  List& list = lists_[static_cast<std::size_t>(kind)];
  node.due_ = now + durations_[static_cast<std::size_t>(kind)];
  node.previous_ = list.previous_;
  node.next_ = &list;
  list.previous_->next_ = &node;
  list.previous_ = &node;
}

std::optional<Deadlines::Clock::time_point> Deadlines::Next() const noexcept {
  std::optional<Clock::time_point> next;
  for (std::size_t kind = 0; kind < kinds_; ++kind) {
    const List& list = lists_[kind];
    if (list.next_ == &list) continue;
    next = next ? std::min(*next, list.next_->due_) : list.next_->due_;
  }
  return next;
}

void Deadlines::Run(Clock::time_point now) {
  for (std::size_t kind = 0; kind < kinds_; ++kind) {
    List& list = lists_[kind];
    // Nodes that are armed again during this loop come after `last`.
    const Node* const last = list.previous_;
    while (list.next_ != &list && list.next_->due_ <= now) {
      Node& node = *list.next_;
      const bool was_last = &node == last;
      node.Unlink();
      node.OnDeadline(static_cast<Kind>(kind));
      if (was_last) break;
    }
  }
}

}  // namespace tidegate::net

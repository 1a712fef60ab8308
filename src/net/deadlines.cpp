// SPDX-License-Identifier: Apache-2.0
#include "net/deadlines.hpp"

#include <algorithm>

namespace tidegate::net {

void Deadlines::Node::Unlink() noexcept {
  if (next_ == nullptr) return;
  previous_->next_ = next_;
  next_->previous_ = previous_;
  next_ = previous_ = nullptr;
}

Deadlines::Deadlines(boost::asio::io_context& context,
                     const std::array<Duration, kKinds>& durations)
    : durations_(durations), timer_(context) {
  for (List& list : lists_) list.next_ = list.previous_ = &list;
}

void Deadlines::Arm(Node& node, Kind kind) {
  node.Unlink();
  List& list = lists_[static_cast<std::size_t>(kind)];
  node.due_ = std::chrono::steady_clock::now() + durations_[static_cast<std::size_t>(kind)];
  node.previous_ = list.previous_;
  node.next_ = &list;
  list.previous_->next_ = &node;
  list.previous_ = &node;
  if (node.due_ < scheduled_) Schedule(node.due_);
}

Deadlines::Moment Deadlines::Earliest() const noexcept {
  Moment earliest = Moment::max();
  for (const List& list : lists_) {
    if (list.next_ != &list) earliest = std::min(earliest, list.next_->due_);
  }
  return earliest;
}

void Deadlines::Schedule(Moment due) {
  scheduled_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) Run();
  });
}

void Deadlines::Run() {
  const Moment now = std::chrono::steady_clock::now();
  scheduled_ = Moment::max();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    List& list = lists_[kind];
    // A node may arm itself again: it then stands behind all that are due now.
    while (list.next_ != &list && list.next_->due_ <= now) {
      Node& node = *list.next_;
      node.Unlink();
      node.OnDeadline(static_cast<Kind>(kind));
    }
  }
  // A tenth of a second of patience merges deadlines that lie close together.
  const Moment earliest = Earliest();
  if (earliest != Moment::max()) Schedule(std::max(earliest, now + std::chrono::milliseconds{100}));
}

}  // namespace tidegate::net

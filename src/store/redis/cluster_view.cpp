// SPDX-License-Identifier: Apache-2.0
#include "store/redis/cluster_view.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tidegate::redis {
namespace {

/// Reads and checks a whole reply before ClusterView uses any part of it.
class SlotTable {
 public:
  explicit SlotTable(const Endpoint& source) : source_(source) {}

  [[nodiscard]] bool Read(const Reply& reply) {
    // Redis never sends more ranges than there are slots: some of them would overlap.
    if (!reply.is(Reply::Type::kArray) || reply.elements.size() > kSlots) return false;
    return std::ranges::all_of(reply.elements,
                               [this](const Reply& range) { return ReadRange(range); });
  }

  std::vector<Endpoint> nodes;
  std::array<std::uint16_t, kSlots> owners{};

 private:
  [[nodiscard]] bool ReadRange(const Reply& range) {
    const auto& parts = range.elements;
    if (!range.is(Reply::Type::kArray) || parts.size() < 3) return false;
    if (!parts[0].is(Reply::Type::kInteger) || !parts[1].is(Reply::Type::kInteger)) return false;
    const std::int64_t first = parts[0].integer;
    const std::int64_t last = parts[1].integer;
    if (first < 0 || first > last || last >= static_cast<std::int64_t>(kSlots)) return false;
    const auto is_node = [](const Reply& part) { return part.is(Reply::Type::kArray); };
    if (!std::all_of(parts.begin() + 2, parts.end(), is_node)) return false;
    // The replicas are not used, so their names are not read.
    const std::uint16_t master = ReadNode(parts[2]);
    named_ += static_cast<std::size_t>(last - first) + 1;
    // Without this bound, 16,384 ranges of all slots would take a good part of a second.
    if (master == 0 || named_ > 4 * kSlots) return false;
    std::fill(owners.begin() + first, owners.begin() + last + 1, master);
    return true;
  }

  /// Returns the number of a node; 0 if it is malformed.
  [[nodiscard]] std::uint16_t ReadNode(const Reply& node) {
    const auto& parts = node.elements;
    if (parts.size() < 2 || !parts[1].is(Reply::Type::kInteger)) return 0;
    if (!parts[0].is(Reply::Type::kText) && !parts[0].is(Reply::Type::kNull)) return 0;
    std::string_view host = parts[0].text;
    if (host.empty() || host == "?") host = source_.host;
    const std::int64_t number = parts[1].integer;
    if (number < 1 || number > UINT16_MAX || !IsHost(host)) return 0;
    const auto port = static_cast<std::uint16_t>(number);
    const auto [at, added] = numbers_.try_emplace({host, port}, 0);
    if (added) {
      nodes.push_back({.host = std::string(host), .port = port});
      at->second = static_cast<std::uint16_t>(nodes.size());
    }
    return at->second;
  }

  const Endpoint& source_;
  std::map<std::pair<std::string_view, std::uint16_t>, std::uint16_t> numbers_;
  std::size_t named_ = 0;  ///< The number of slots in all ranges so far.
};

}  // namespace

std::vector<Endpoint> ClusterView::Masters() const {
  std::vector<Endpoint> masters;
  std::vector<bool> seen(nodes_.size() + 1);
  for (const std::uint16_t owner : owners_) {
    if (owner == 0 || seen[owner]) continue;
    seen[owner] = true;
    masters.push_back(nodes_[owner - 1]);
  }
  return masters;
}

void ClusterView::OnAsked(TimePoint now) {
  asking_ = true;
  wanted_ = false;
  version_asked_ = version_;
  last_asked_ = now;
  due_ = TimePoint::max();
}

bool ClusterView::OnSlots(const Reply& reply, const Endpoint& source, TimePoint now) {
  SlotTable table(source);
  if (!table.Read(reply)) {
    OnAskFailed(now);
    return false;
  }
  const auto owner = [](const std::vector<Endpoint>& nodes, std::uint16_t number) {
    return number == 0 ? nullptr : &nodes[number - 1];
  };
  bool same = true;
  for (std::size_t slot = 0; same && slot < kSlots; ++slot) {
    // Neighbours mostly have the same owner: its name is compared once for all of them.
    if (slot > 0 && owners_[slot] == owners_[slot - 1] &&
        table.owners[slot] == table.owners[slot - 1]) {
      continue;
    }
    const Endpoint* const old = owner(nodes_, owners_[slot]);
    const Endpoint* const now_owner = owner(table.nodes, table.owners[slot]);
    same = old == nullptr || now_owner == nullptr ? old == now_owner : *old == *now_owner;
  }
  if (!same) ++version_;
  nodes_ = std::move(table.nodes);
  owners_ = table.owners;
  known_ = true;
  if (asking_) Answered(now);
  return true;
}

void ClusterView::OnAskFailed(TimePoint now) {
  // That no node is connected counts as an attempt. Otherwise the next one would be due at once.
  if (!asking_) OnAsked(now);
  wanted_ = true;
  last_trouble_ = now;
  Answered(now);
}

void ClusterView::OnMoved(const Redirect& redirect, TimePoint now) {
  if (redirect.slot < kSlots && !redirect.to.host.empty()) {
    const std::uint16_t owner = NumberOf(redirect.to);
    if (std::exchange(owners_[redirect.slot], owner) != owner) ++version_;
  }
  OnTrouble(now);
}

std::uint16_t ClusterView::NumberOf(const Endpoint& node) {
  const auto at = std::find(nodes_.begin(), nodes_.end(), node);
  if (at != nodes_.end()) return static_cast<std::uint16_t>(at - nodes_.begin() + 1);
  if (nodes_.size() >= many_) {
    ForgetUnused();
    many_ = std::max(kMany, 2 * nodes_.size());
  }
  nodes_.push_back(node);
  return static_cast<std::uint16_t>(nodes_.size());
}

void ClusterView::ForgetUnused() {
  std::vector<Endpoint> used;
  std::vector<std::uint16_t> numbers(nodes_.size() + 1);
  for (std::uint16_t& owner : owners_) {
    if (owner == 0) continue;
    std::uint16_t& number = numbers[owner];
    if (number == 0) {
      used.push_back(std::move(nodes_[owner - 1]));
      number = static_cast<std::uint16_t>(used.size());
    }
    owner = number;
  }
  nodes_ = std::move(used);
}

void ClusterView::Answered(TimePoint now) {
  asking_ = false;
  apart_ = version_ == version_asked_ ? std::min(2 * apart_, kMost) : kLeast;
  due_ = wanted_ ? Soon(now) : now + kQuiet - UpTo(kQuiet / 3);
}

void ClusterView::OnTrouble(TimePoint now) {
  if (now - last_trouble_ >= kQuiet) apart_ = kLeast;
  last_trouble_ = now;
  // Draw one delay for all trouble until the request: the smallest of many would be almost zero.
  if (std::exchange(wanted_, true) || asking_) return;
  due_ = std::min(due_, Soon(now));
}

ClusterView::TimePoint ClusterView::Soon(TimePoint now) {
  return std::max(now + UpTo(kSoon), last_asked_ + apart_);
}

std::chrono::microseconds ClusterView::UpTo(std::chrono::microseconds most) noexcept {
  const auto values = static_cast<std::uint64_t>(most.count()) + 1;
  return std::chrono::microseconds{static_cast<std::int64_t>(random_.Next() % values)};
}

}  // namespace tidegate::redis

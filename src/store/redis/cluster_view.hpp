// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// Knows which node of a cluster serves which slot, and when to request the topology again. A state
/// machine without I/O and clock.
///
/// A redirection changes the owner of its slot at once. Other slots may have moved too, so the
/// topology is requested soon: at a random moment, so that the nodes of a fleet do not all ask at
/// once, and at least kLeast after the last request. Each reply without news doubles that time, up
/// to kMost. Without trouble, the topology is requested about once in kQuiet.
class ClusterView {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSoon{50};  ///< The longest random delay.
  static constexpr std::chrono::milliseconds kLeast{100};
  static constexpr std::chrono::milliseconds kMost{400};
  static constexpr std::chrono::seconds kQuiet{15};  ///< Minus a random time of up to a third.

  /// The first request is due at once.
  explicit ClusterView(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] bool known() const noexcept { return known_; }
  /// Returns nullptr if the owner is not known. Valid until the next change.
  [[nodiscard]] const Endpoint* OwnerOf(Slot slot) const noexcept {
    const std::uint16_t owner = owners_[slot];
    return owner == 0 ? nullptr : &nodes_[owner - 1];
  }
  /// Returns the owners of slots, each once.
  [[nodiscard]] std::vector<Endpoint> Masters() const;
  /// Returns a number that grows whenever a slot gets another owner or loses its owner.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// Returns when the next request is due; TimePoint::max() while one is in flight.
  [[nodiscard]] TimePoint due() const noexcept { return due_; }
  /// `CLUSTER SLOTS` was sent.
  void OnAsked(TimePoint now);
  /// Takes the reply of `source`. Slots that it does not name have no owner from now on. Returns
  /// false if the reply is malformed: nothing changes, and the next request is due soon.
  [[nodiscard]] bool OnSlots(const Reply& reply, const Endpoint& source, TimePoint now);
  /// The request failed: no reply came, or an error, or no node is connected.
  void OnAskFailed(TimePoint now);

  /// REQUIRES: a redirection of kMoved, with a host.
  void OnMoved(const Redirect& redirect, TimePoint now);
  /// A node is down, or a slot is not served: the topology may have changed.
  void OnTrouble(TimePoint now);

 private:
  /// Returns the number of a node, and adds the node if it is new.
  [[nodiscard]] std::uint16_t NumberOf(const Endpoint& node);
  /// Drops the nodes that own no slot and renumbers the others.
  void ForgetUnused();
  /// Ends the request and schedules the next one.
  void Answered(TimePoint now);
  [[nodiscard]] TimePoint Soon(TimePoint now);
  [[nodiscard]] std::chrono::microseconds UpTo(std::chrono::microseconds most) noexcept;

  static constexpr std::size_t kMany = 64;

  /// When there are many_ nodes, those without a slot are dropped before a node is added. So no
  /// server can make this grow beyond two nodes for each slot.
  std::vector<Endpoint> nodes_;
  std::size_t many_ = kMany;
  std::array<std::uint16_t, kSlots> owners_{};  ///< Numbers in nodes_, from 1; 0: no owner.
  bool known_ = false;
  bool asking_ = false;
  bool wanted_ = false;  ///< There was trouble since the last request, whose reply may be older.
  std::uint64_t version_ = 0;
  std::uint64_t version_asked_ = 0;  ///< The version when the last request was sent.
  TimePoint due_{};
  TimePoint last_asked_{};
  TimePoint last_trouble_{};
  std::chrono::milliseconds apart_ = kLeast;
  Random random_;
};

}  // namespace tidegate::redis

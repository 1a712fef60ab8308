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

/// Which node of a cluster serves which slot, as far as one reactor knows, and when to ask again.
/// No I/O, no clock of its own.
///
/// A redirection is believed at once for its slot. Other slots may have moved too, so the topology
/// is requested soon after: at a random moment, so that not all nodes of a fleet ask at once, at
/// least kLeast after the last time, and twice that after each reply without news, up to kMost.
/// Without trouble, about once in kQuiet.
class ClusterView {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSoon{50};  ///< At most, by chance.
  static constexpr std::chrono::milliseconds kLeast{100};
  static constexpr std::chrono::milliseconds kMost{400};
  static constexpr std::chrono::seconds kQuiet{15};  ///< A random third less at most.

  /// Knows nothing; the first request is due at once.
  explicit ClusterView(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] bool known() const noexcept { return known_; }
  /// Returns nullptr if the owner is not known. Valid until the next change.
  [[nodiscard]] const Endpoint* OwnerOf(Slot slot) const noexcept {
    const std::uint16_t owner = owners_[slot];
    return owner == 0 ? nullptr : &nodes_[owner - 1];
  }
  /// Returns the owners of slots, each once.
  [[nodiscard]] std::vector<Endpoint> Masters() const;
  /// Grows whenever a slot gets another owner, or none.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// When the next request is due; TimePoint::max() while one is in flight.
  [[nodiscard]] TimePoint due() const noexcept { return due_; }
  /// `CLUSTER SLOTS` was sent.
  void OnAsked(TimePoint now);
  /// The reply of `source`. Slots that it does not name have no owner from now on. Returns false if
  /// it is malformed: nothing changes, and the next request is due soon.
  [[nodiscard]] bool OnSlots(const Reply& reply, const Endpoint& source, TimePoint now);
  /// No reply came, or an error; or no node is connected.
  void OnAskFailed(TimePoint now);

  /// REQUIRES: a redirection of kMoved, with a host.
  void OnMoved(const Redirect& redirect, TimePoint now);
  /// A node is down, or a slot is not served: the topology may have changed.
  void OnTrouble(TimePoint now) { Want(now); }

 private:
  [[nodiscard]] std::uint16_t NumberOf(const Endpoint& node);
  /// Drops the nodes that own nothing, and renumbers the others.
  void ForgetUnused();
  void Own(Slot slot, std::uint16_t owner) noexcept;
  /// The request is over.
  void Answered(TimePoint now);
  /// Due soon, but not too soon after the last.
  void Want(TimePoint now);
  [[nodiscard]] TimePoint Soon(TimePoint now);
  [[nodiscard]] std::chrono::microseconds UpTo(std::chrono::microseconds most) noexcept;

  static constexpr std::size_t kMany = 64;

  /// At most two for each slot, whoever is named: from many_ on, those without a slot go first.
  std::vector<Endpoint> nodes_;
  std::size_t many_ = kMany;
  std::array<std::uint16_t, kSlots> owners_{};  ///< Number in nodes_, from 1; 0: none.
  bool known_ = false;
  bool asking_ = false;
  bool wanted_ = false;  ///< Since the last request was sent: its reply may be older.
  std::uint64_t version_ = 0;
  std::uint64_t version_asked_ = 0;  ///< When the last request was sent.
  TimePoint due_{};
  TimePoint last_asked_{};
  TimePoint last_trouble_{};
  std::chrono::milliseconds apart_ = kLeast;
  Random random_;
};

}  // namespace tidegate::redis

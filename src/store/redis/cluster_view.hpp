// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "store/redis/backoff.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redirect.hpp"
#include "store/redis/resp_reader.hpp"
#include "store/redis/slot.hpp"

namespace tidegate::redis {

/// Which node of a cluster serves which slot, as far as one reactor knows, and when to ask for it
/// again. No I/O, no clock of its own.
///
/// A redirection is believed at once for its slot. It also shows that others may have moved, so
/// the whole is asked for soon after; but never by all nodes of a fleet at once, nor again and
/// again: a moment of chance first, then at least kLeast apart, and twice that after each that
/// brought nothing new, up to kMost. In quiet times once in kQuiet, more or less.
class ClusterView {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kSoon{50};  ///< At most, by chance.
  static constexpr std::chrono::milliseconds kLeast{100};
  static constexpr std::chrono::milliseconds kMost{400};
  static constexpr std::chrono::seconds kQuiet{15};  ///< A random third less at most.

  /// Nothing is known, and the first question is due at once.
  explicit ClusterView(std::uint64_t seed);

  [[nodiscard]] bool known() const noexcept { return known_; }
  /// nullptr: nobody, as far as is known. Valid until the view is told something.
  [[nodiscard]] const Endpoint* OwnerOf(Slot slot) const noexcept {
    const std::uint16_t owner = owners_[slot];
    return owner == 0 ? nullptr : &nodes_[owner - 1];
  }
  /// Those that own a slot, each once.
  [[nodiscard]] std::vector<Endpoint> Masters() const;
  /// Grows whenever a slot gets another owner, or none.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

  /// When the next question is due; TimePoint::max() while one is under way.
  [[nodiscard]] TimePoint due() const noexcept { return due_; }
  /// `CLUSTER SLOTS` was sent to somebody.
  void OnAsked(TimePoint now);
  /// What `asked` answered. False: it makes no sense; then nothing changes, and another one is to
  /// be asked soon. Slots that are not named have no owner from now on.
  [[nodiscard]] bool OnSlots(const Reply& reply, const Endpoint& asked, TimePoint now);
  /// No reply came, or an error; or nobody could be asked.
  void OnAskFailed(TimePoint now);

  /// REQUIRES: a redirection of kMoved, with a host.
  void OnMoved(const Redirect& redirect, TimePoint now);
  /// Something that another view of the cluster might explain: a node is down, a slot not served.
  void OnTrouble(TimePoint now);

 private:
  [[nodiscard]] std::uint16_t NumberOf(const Endpoint& node);
  /// Drops the nodes that own nothing, and numbers the others anew.
  void ForgetUnused();
  void Own(Slot slot, std::uint16_t owner) noexcept;
  /// The question is over, whatever came of it.
  void Answered(TimePoint now);
  /// Due soon, but not too soon after the last.
  void Want(TimePoint now);
  [[nodiscard]] TimePoint Soon(TimePoint now);
  /// By chance.
  [[nodiscard]] Backoff::Duration UpTo(Backoff::Duration most) noexcept;

  static constexpr std::size_t kMany = 64;

  /// At most two for each slot, whoever is named: from many_ on, those without a slot go first.
  std::vector<Endpoint> nodes_;
  std::size_t many_ = kMany;
  std::array<std::uint16_t, kSlots> owners_{};  ///< Number in nodes_, from 1; 0: nobody.
  bool known_ = false;
  bool asking_ = false;
  bool wanted_ = false;  ///< Since the last question was sent: its reply may be older.
  std::uint64_t version_ = 0;
  std::uint64_t version_asked_ = 0;  ///< What it was when the last question was sent.
  TimePoint due_{};
  TimePoint last_asked_{};
  TimePoint last_trouble_{};
  std::chrono::milliseconds apart_ = kLeast;
  Backoff chance_;  ///< For random numbers only.
};

}  // namespace tidegate::redis

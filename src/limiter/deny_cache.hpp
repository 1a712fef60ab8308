// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/call.hpp"
#include "store/fingerprint.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Sets `record.request`, which is the same for calls with the same list of keys, slot tags,
/// quotas, costs and leases. Returns an Error if two charges name the same key, even with different
/// slot tags: while Redis does not answer, the memory store may have to answer the same request,
/// and it ignores slot tags.
[[nodiscard]] std::optional<Error> Identify(const Fingerprinter& fingerprinter, Call& call);

/// A cache of denials that still hold, so that a flood on a denied key costs no I/O.
///
/// Only the refill adds tokens, so the same request (its whole list of keys, quotas and costs) is
/// denied until its retry_after has passed since the request was *sent*, which was before Redis
/// read the key. A refund or a reset invalidates the key. Leases are never kept, because they can
/// be released at any time.
///
/// The size is fixed, and callers pass the time. Used by one reactor.
class DenyCache {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// How long an entry is used at most, in case a message that invalidates it was missed.
  static constexpr std::chrono::seconds kCap{3};
  static constexpr std::size_t kMostCharges = 4;  ///< Requests with more charges are not kept.

  explicit DenyCache(std::size_t entries = 8192) : entries_(std::max(entries, kWays)) {}

  /// Returns true if the cache holds a denial of the call, and fills the call's decisions.
  [[nodiscard]] bool Find(Call& call, TimePoint now) noexcept;

  /// Keeps the denial in `call`, whose request was sent at `sent`, if MayKeep(call).
  void Insert(const Call& call, TimePoint sent);

  /// Drops the denials that involve this key, whatever the rule's algorithm, and those of the few
  /// keys that share its place.
  void Invalidate(std::string_view rule, std::string_view identity) {
    Invalidate(SubjectOf(rule, identity));
  }
  /// Does the same for the key that KeyNames::AppendSubject writes as `subject`.
  void Invalidate(std::string_view subject) noexcept { ++generations_[PlaceOf(subject)]; }
  void Clear() noexcept {
    for (Entry& entry : entries_) entry.until = {};
  }

  [[nodiscard]] static bool MayKeep(const Call& call) noexcept;

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kGenerations = 4096;

  struct Denial {  ///< The decision on one charge, as of the time at which the request was sent.
    std::int64_t remaining;
    Micros retry_after;
    Micros more_after;
    Micros reset_after;
    std::uint32_t generation;
    std::uint32_t place;  ///< The index of the key in generations_.
    bool allowed;
    bool never;
  };
  struct Entry {
    std::array<std::uint64_t, 2> request{};
    TimePoint since{};
    TimePoint until{};
    std::size_t count = 0;
    std::array<Denial, kMostCharges> denials{};
  };

  [[nodiscard]] static std::uint32_t PlaceOf(std::string_view subject) noexcept;
  [[nodiscard]] std::span<Entry> SetOf(const std::array<std::uint64_t, 2>& request) noexcept;
  [[nodiscard]] bool IsCurrent(const Entry& entry) const noexcept;
  /// Returns the key as KeyNames::AppendSubject writes it. Valid until the next call.
  [[nodiscard]] std::string_view SubjectOf(std::string_view rule, std::string_view identity);

  std::vector<Entry> entries_;
  /// How often the keys of each place were invalidated. Those keys invalidate each other's denials.
  std::array<std::uint32_t, kGenerations> generations_{};
  std::string subject_;
};

}  // namespace tidegate

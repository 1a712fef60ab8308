// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tidegate {

/// One key among the hottest. Its true count is in [count - error, count].
struct HotKey {
  std::uint32_t slot = 0;  ///< Of its rule: RuleSlots knows the name.
  std::string identity;
  std::uint64_t count = 0;
  std::uint64_t error = 0;
};

/// The hottest keys by one measure, by falling `count`. No key that is missing here has more than
/// `error`.
struct HotList {
  std::uint64_t total = 0;  ///< Of all keys, exactly.
  std::uint64_t error = 0;
  std::vector<HotKey> keys;
};

enum class HotBy : std::uint8_t {
  kRequests,
  kDenials,  ///< By rules that enforce, and by operators' bans.
  kCost,     ///< That was asked for, whether it was granted or not: at least 1 a request.
};
inline constexpr std::size_t kHotViews = 3;

/// What was hot over the last `span`: rates are count / span.
struct HotReport {
  std::array<HotList, kHotViews> by;
  /// Requests over `span`, each once: the total of the list by requests counts a request once for
  /// each rule.
  std::uint64_t requests = 0;
  std::chrono::milliseconds span{0};

  [[nodiscard]] const HotList& of(HotBy view) const noexcept {
    return by[static_cast<std::size_t>(view)];
  }
};

/// One report of several reactors', with at most so many keys a view; nullptr parts are empty ones.
///
/// Counts and errors of a key are added. In a part that does not have it, it may have had anything
/// up to that part's `error`: so much is added to both. A key that no part has is bounded by the
/// sum of the parts' errors, one that is cut off here by its count; `error` is the largest of
/// these. So both promises above hold for what comes out if they held for what went in. The span is
/// the longest of the parts': they differ by half a second at most.
[[nodiscard]] HotReport Merge(std::span<const std::shared_ptr<const HotReport>> parts,
                              std::size_t most);

}  // namespace tidegate

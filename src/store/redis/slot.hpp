// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tidegate::redis {

/// Redis Cluster divides its keys among so many slots.
inline constexpr std::size_t kSlots = 16'384;
using Slot = std::uint16_t;

/// Of the text between the first `{` and the next `}` where there is any, else of all of it.
[[nodiscard]] Slot SlotOfKey(std::string_view key) noexcept;
/// Of what stands between the braces.
[[nodiscard]] Slot SlotOfTag(std::string_view tag) noexcept;

}  // namespace tidegate::redis

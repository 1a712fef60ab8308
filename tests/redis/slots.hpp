// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate::redis_test {

/// Returns the Redis Cluster slot of the text between the braces of a key. Shares no code with
/// Tidegate's own implementation.
[[nodiscard]] int SlotOfTag(std::string_view tag);
/// Returns a text with that slot. The first call takes some milliseconds.
[[nodiscard]] const std::string& TagOf(int slot);

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate::redis_test {

/// Redis Cluster's slot of what stands between braces. Shares no code with Tidegate's own.
[[nodiscard]] int SlotOfTag(std::string_view tag);
/// A text of that slot. The first call takes some milliseconds.
[[nodiscard]] const std::string& TagOf(int slot);

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::redis {

/// Flat arrays of integers as msgpack: what the script reads and answers with.
void WritePacked(std::string& out, const std::vector<std::int64_t>& numbers);

/// False: `packed` is not exactly one such array. Whole numbers that come as doubles are integers.
[[nodiscard]] bool ReadPacked(std::string_view packed, std::vector<std::int64_t>& numbers);

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::redis {

/// Appends a flat array of integers as msgpack, for the batch script.
void WritePacked(std::string& out, const std::vector<std::int64_t>& numbers);

/// Reads such an array. Returns false if `packed` is anything else. Redis may send an integer as a
/// double.
[[nodiscard]] bool ReadPacked(std::string_view packed, std::vector<std::int64_t>& numbers);

}  // namespace tidegate::redis

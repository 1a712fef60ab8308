// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::redis {

/// Nothing where a `%` is not followed by two hexadecimal digits, or stands for NUL, which neither
/// a path nor anybody's password holds.
[[nodiscard]] std::optional<std::string> PercentDecode(std::string_view text);

enum class Slash : std::uint8_t { kPlain, kEncoded };
/// What PercentDecode reads back, fit for a line of a log. Only in a path a `/` is plain.
[[nodiscard]] std::string PercentEncode(std::string_view text, Slash slash);

}  // namespace tidegate::redis

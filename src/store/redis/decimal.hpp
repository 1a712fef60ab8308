// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace tidegate::redis {

/// Plain decimal digits, `min` to `max`; no sign and no leading zero, which some take for octal.
[[nodiscard]] inline std::optional<int> ParseDecimal(std::string_view text, int min,
                                                     int max) noexcept {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || !digits || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < min || number > max) return std::nullopt;
  return number;
}

}  // namespace tidegate::redis

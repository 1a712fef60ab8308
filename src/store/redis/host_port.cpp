// SPDX-License-Identifier: Apache-2.0
#include "store/redis/host_port.hpp"

#include <algorithm>
#include <charconv>

namespace tidegate::redis {

bool IsHost(std::string_view text) noexcept {
  constexpr std::size_t kLongestName = 253;  // That DNS can carry.
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::optional<std::int64_t> ReadWhole(std::string_view digits) noexcept {
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  if (digits.starts_with('-')) return std::nullopt;
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

std::optional<std::uint16_t> ToPort(std::int64_t number) noexcept {
  if (number < 1 || number > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

std::optional<std::uint16_t> ReadPort(std::string_view digits) noexcept {
  const auto number = ReadWhole(digits);
  return number ? ToPort(*number) : std::nullopt;
}

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/clock.hpp"
#include "tidegate/error.hpp"

// Numbers, durations and sizes as people write and read them.

namespace tidegate {

/// Returns the decimal number in `text`; nothing if `text` is not a number from `min` to `max`.
template <class N>
[[nodiscard]] std::optional<N> ParseNumber(std::string_view text,
                                           N min = std::numeric_limits<N>::min(),
                                           N max = std::numeric_limits<N>::max()) noexcept {
  N number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end || number < min || number > max) return std::nullopt;
  return number;
}

struct DurationUnit {
  std::string_view name;
  Micros length;
};
/// The units of durations. The longest comes first, so that printing finds the shortest text.
inline constexpr std::array<DurationUnit, 6> kDurationUnits = {
    {{"d", std::chrono::days{1}},
     {"h", std::chrono::hours{1}},
     {"m", std::chrono::minutes{1}},
     {"s", std::chrono::seconds{1}},
     {"ms", std::chrono::milliseconds{1}},
     {"us", Micros{1}}}};

/// Reads "250us", "100ms", "1s", "5m", "24h" or "7d". The Error says what would be right.
[[nodiscard]] Result<Micros> ParseDuration(std::string_view text);

/// Returns a text such as "333.334 ms", "2 s", "1 min 30 s" or "2 d 3 h". Rounds up to whole
/// milliseconds from one second on, to whole seconds from one minute on, and so forth, so that a
/// client that waits for the printed time is not too early. REQUIRES: `duration` is not negative.
[[nodiscard]] std::string FormatDuration(Micros duration);

inline constexpr std::int64_t kKibibyte = 1 << 10;
inline constexpr std::int64_t kMebibyte = 1 << 20;
inline constexpr std::int64_t kGibibyte = 1 << 30;

/// Reads `4096`, `64KiB`, `256MiB` or `1GiB`: bytes. The Error says what would be right.
[[nodiscard]] Result<std::int64_t> ParseSize(std::string_view text);

/// Returns `256MiB` for 268435456, and plain digits for a size that no unit divides.
[[nodiscard]] std::string SizeText(std::int64_t bytes);

}  // namespace tidegate

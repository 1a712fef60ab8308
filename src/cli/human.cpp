// SPDX-License-Identifier: Apache-2.0
#include "cli/human.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// With so many digits behind the point.
std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// Three digits that count: 1.25, 12.5, 125.
std::string Three(double value) {
  if (value < 9.995) return Fixed(value, 2);
  return Fixed(value, value < 99.95 ? 1 : 0);
}

}  // namespace

std::string Count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string Rate(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) return "0";
  if (per_second < 9.95) return Fixed(per_second, 1);
  return Count(std::llround(std::min(per_second, 9e18)));
}

std::string Share(double part, double of) {
  if (of <= 0) return "-";
  return Fixed(100 * part / of, 1) + "%";
}

std::string Bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {" KiB", " MiB", " GiB", " TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Fixed(value, 1) + std::string(kUnits[unit]);
}

std::string Seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const double us = seconds * 1e6;
  if (us < 999.5) return (us < 9.995 ? Fixed(us, 1) : Fixed(us, 0)) + " us";
  if (us < 999'500) return Three(us / 1e3) + " ms";
  return Three(seconds) + " s";
}

std::string Span(std::chrono::milliseconds span) {
  if (span.count() < 1000) return std::to_string(std::max<std::int64_t>(span.count(), 0)) + " ms";
  return FormatDuration(std::chrono::floor<std::chrono::seconds>(span));
}

std::string TimeStamp(std::int64_t ms_since_epoch) {
  const std::time_t seconds = static_cast<std::time_t>(ms_since_epoch / 1000);
  std::tm parts{};
  char text[64];
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts) == 0) {
    return "-";
  }
  return text;
}

std::string Plural(std::int64_t count, const std::string& noun) {
  return Count(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace tidegate::cli

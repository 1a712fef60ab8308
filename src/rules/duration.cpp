// SPDX-License-Identifier: Apache-2.0
#include "rules/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace tidegate {
namespace {

using std::chrono::ceil;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const DurationUnit* FindUnit(std::string_view name) noexcept {
  for (const DurationUnit& unit : kDurationUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::unexpected<Error> RefuseDuration(std::string_view text, std::string_view why) {
  std::string message = "\"";
  message += text;
  message += "\" ";
  message += why;
  return std::unexpected(Error{ErrorCode::kBadQuota, std::move(message)});
}

/// Thousandths as a decimal fraction: 1500 is "1.5", 2000 is "2".
std::string Thousandths(std::int64_t n) {
  std::string text = std::to_string(n / 1000);
  if (n % 1000 == 0) return text;
  std::string fraction = std::to_string(1000 + n % 1000).substr(1);  // Keeps leading zeros.
  fraction.resize(fraction.find_last_not_of('0') + 1);
  return text + "." + fraction;
}

std::string TwoUnits(std::int64_t n, std::int64_t small_per_large, const char* large,
                     const char* small) {
  std::string text = std::to_string(n / small_per_large) + large;
  if (n % small_per_large != 0) text += " " + std::to_string(n % small_per_large) + small;
  return text;
}

}  // namespace

Result<Micros> ParseDuration(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  const DurationUnit* const unit = FindUnit({rest, static_cast<std::size_t>(end - rest)});
  if (error == std::errc::invalid_argument || unit == nullptr || text.front() == '-') {
    return RefuseDuration(
        text,
        "is not a duration: write a whole number and a unit (us, ms, s, m, h or d), "
        "as in 100ms, 1s or 24h");
  }
  if (error == std::errc::result_out_of_range ||
      count > std::numeric_limits<std::int64_t>::max() / unit->length.count()) {
    return RefuseDuration(text, "is too long a duration: stay below 292,000 years");
  }
  return count * unit->length;
}

std::string FormatDuration(Micros duration) {
  if (duration == Micros{0}) return "0 s";
  if (duration < milliseconds{1}) return std::to_string(duration.count()) + " us";
  if (duration < seconds{1}) return Thousandths(duration.count()) + " ms";
  // Each rounding may reach the next unit, as 59,999.5 ms does; so the steps cascade.
  const auto ms = ceil<milliseconds>(duration);
  if (ms < minutes{1}) return Thousandths(ms.count()) + " s";
  const auto s = ceil<seconds>(ms);
  if (s < hours{1}) return TwoUnits(s.count(), 60, " min", " s");
  const auto min = ceil<minutes>(s);
  if (min < days{2}) return TwoUnits(min.count(), 60, " h", " min");
  return TwoUnits(ceil<hours>(min).count(), 24, " d", " h");
}

}  // namespace tidegate

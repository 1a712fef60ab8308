// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <algorithm>

#include "base/failure.hpp"

namespace tidegate {
namespace {

using std::chrono::ceil;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct SizeUnit {
  std::string_view name;
  int shift;
};
/// The units of sizes. The largest comes first, so that printing finds the shortest text.
constexpr std::array<SizeUnit, 4> kSizeUnits = {{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}}};

/// Returns `n` thousandths as a decimal fraction: 1500 is "1.5", 2000 is "2".
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

/// A number and the unit behind it.
template <class Unit>
struct Quantity {
  std::int64_t count = 0;
  const Unit* unit = nullptr;  ///< nullptr if the text is not a number with a unit.
  bool too_large = false;
};
template <class Unit, std::size_t N>
Quantity<Unit> ReadQuantity(std::string_view text, const std::array<Unit, N>& units) noexcept {
  Quantity<Unit> quantity;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quantity.count);
  if (error == std::errc::invalid_argument || text.front() == '-') return quantity;
  const auto* const unit = std::ranges::find(units, std::string_view(rest, end), &Unit::name);
  if (unit != units.end()) quantity.unit = unit;
  quantity.too_large = error == std::errc::result_out_of_range;
  return quantity;
}

}  // namespace

Result<Micros> ParseDuration(std::string_view text) {
  const auto [count, unit, too_large] = ReadQuantity(text, kDurationUnits);
  const auto refuse = [text](const std::string& why) {
    return Failure(ErrorCode::kBadArgument, "\"" + std::string(text) + "\" " + why);
  };
  if (unit == nullptr) {
    return refuse(
        "is not a duration: write a whole number and a unit (us, ms, s, m, h or d), as in 100ms, "
        "1s or 24h");
  }
  if (too_large || count > std::numeric_limits<std::int64_t>::max() / unit->length.count()) {
    return refuse("is too long a duration: stay below 292,000 years");
  }
  return count * unit->length;
}

std::string FormatDuration(Micros duration) {
  if (duration == Micros{0}) return "0 s";
  if (duration < milliseconds{1}) return std::to_string(duration.count()) + " us";
  if (duration < seconds{1}) return Thousandths(duration.count()) + " ms";
  // Rounding may reach the next unit (59,999.5 ms is 1 min), so each step rounds the last result.
  const auto ms = ceil<milliseconds>(duration);
  if (ms < minutes{1}) return Thousandths(ms.count()) + " s";
  const auto s = ceil<seconds>(ms);
  if (s < hours{1}) return TwoUnits(s.count(), 60, " min", " s");
  const auto min = ceil<minutes>(s);
  if (min < days{2}) return TwoUnits(min.count(), 60, " h", " min");
  return TwoUnits(ceil<hours>(min).count(), 24, " d", " h");
}

Result<std::int64_t> ParseSize(std::string_view text) {
  const auto [count, unit, too_large] = ReadQuantity(text, kSizeUnits);
  if (unit == nullptr || (text.size() > 1 && text.front() == '0')) {
    return Failure(ErrorCode::kBadArgument,
                   "`" + std::string(text) +
                       "` is not a size: write a whole number of bytes, or one with KiB, MiB or "
                       "GiB, as in 256MiB");
  }
  if (too_large || count > std::numeric_limits<std::int64_t>::max() >> unit->shift) {
    return Failure(ErrorCode::kBadArgument, "`" + std::string(text) + "` is too large a size");
  }
  return count << unit->shift;
}

std::string SizeText(std::int64_t bytes) {
  const auto* const unit = std::ranges::find_if(kSizeUnits, [bytes](const SizeUnit& each) {
    return each.shift == 0 || (bytes > 0 && bytes % (std::int64_t{1} << each.shift) == 0);
  });
  return std::to_string(bytes >> unit->shift) + std::string(unit->name);
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "rules/limit_text.hpp"

#include <algorithm>
#include <array>
#include <expected>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "core/quota_scale.hpp"

namespace tidegate {
namespace {

constexpr Micros kLongest = std::chrono::days{366};

/// The names of a unit that people use elsewhere, and the unit to write here.
struct ForeignUnits {
  std::string_view right;
  std::string_view words;  ///< Each word has a space on both sides.
};
constexpr std::array<ForeignUnits, 7> kForeignUnits = {{{"s", " sec second seconds S "},
                                                        {"m", " min minute minutes M "},
                                                        {"h", " hour hours hr "},
                                                        {"d", " day days "},
                                                        {"7d", " week w "},
                                                        {"30d", " month "},
                                                        {"365d", " year "}}};

std::unexpected<Error> BadLimit(std::string_view text, const std::string& why) {
  return Failure(ErrorCode::kBadQuota, Backticked(text) + " " + why);
}

Result<std::int64_t> ParseCount(std::string_view text, std::string_view count) {
  if (!count.empty() && count.front() == '-') return BadLimit(text, "has a negative count");
  if (count.empty() || !std::ranges::all_of(count, IsDigit)) {
    return BadLimit(text, count.contains('.')
                              ? "does not begin with a whole number; for 1.5/s write 3/2s"
                              : "does not begin with a whole number in plain digits, as in 100/s");
  }
  if (count.front() == '0') {
    return BadLimit(text, count.size() == 1
                              ? "would refuse every request; to refuse all, use `deny`"
                              : "begins with a zero; write plain decimal digits");
  }
  const auto value = ParseNumber<std::int64_t>(count);
  if (!value) return BadLimit(text, "has a count beyond 2^63");
  return *value;
}

Result<Micros> ParsePeriod(std::string_view text, std::string_view period) {
  const std::size_t digits = std::min(period.find_first_not_of("0123456789"), period.size());
  const std::string_view unit = period.substr(digits);
  for (const DurationUnit& known : kDurationUnits) {
    if (digits == 0 && known.name == unit) return known.length;
  }
  const std::string word = " " + std::string{unit} + " ";
  for (const auto& [right, words] : kForeignUnits) {
    if (!words.contains(word)) continue;
    return BadLimit(text, "has a period in " + Backticked(unit) + "; write " + Backticked(right));
  }
  if (unit == "ns") return BadLimit(text, "has too short a period: the shortest is 1us");
  if (unit == "y") return BadLimit(text, "has too long a period: the longest is 366d");
  if (digits == 0 ||
      std::ranges::find(kDurationUnits, unit, &DurationUnit::name) == kDurationUnits.end()) {
    return BadLimit(text,
                    "has no period that can be read; write a unit (us, ms, s, m, h or d), with "
                    "or without a whole number before it, as in 100/s or 1000/24h");
  }
  const auto parsed = ParseDuration(period);
  if (!parsed || *parsed > kLongest) {
    return BadLimit(text, "has too long a period: the longest is 366d");
  }
  if (*parsed == Micros{0}) return BadLimit(text, "has too short a period: the shortest is 1us");
  return *parsed;
}

}  // namespace

Result<LimitText> LimitText::Parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    return BadLimit(text, "is not a limit: write a count and a period, as in 100/s or 1000/24h");
  }
  if (text.contains(' ')) {
    return BadLimit(text, "holds a space; write it as in 100/s or 1000/24h");
  }
  const auto count = ParseCount(text, text.substr(0, slash));
  if (!count) return std::unexpected(count.error());
  const auto period = ParsePeriod(text, text.substr(slash + 1));
  if (!period) return std::unexpected(period.error());
  return LimitText{*count, *period};
}

std::string LimitText::Text() const {
  const auto* const unit = std::ranges::find_if(kDurationUnits, [this](const DurationUnit& u) {
    return period.count() % u.length.count() == 0;
  });
  const std::int64_t number = period.count() / unit->length.count();
  std::string text = std::to_string(count) + "/";
  if (number != 1) text += std::to_string(number);
  return text + std::string{unit->name};
}

std::string QuotaText(const Quota& quota, std::string_view written) {
  std::string limit =
      written.empty() ? LimitText{quota.limit(), quota.period()}.Text() : std::string{written};
  if (IsBucket(quota.algorithm()) && quota.capacity() != quota.limit()) {
    return limit + ", burst " + std::to_string(quota.capacity());
  }
  if (quota.algorithm() != Algorithm::kConcurrency) return limit;
  const std::size_t slash = limit.find('/');
  std::string lease = limit.substr(slash + 1);
  if (!IsDigit(lease.front())) lease.insert(0, "1");
  return limit.substr(0, slash) + " at once, lease " + lease;
}

}  // namespace tidegate

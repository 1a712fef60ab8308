// SPDX-License-Identifier: Apache-2.0
#include "rules/limit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "rules/duration.hpp"

namespace tidegate {
namespace {

constexpr Micros kLongest = std::chrono::days{366};

/// What people write elsewhere, and what to write here.
struct Word {
  std::string_view word;
  std::string_view unit;
};
constexpr std::array<Word, 17> kWords = {{{"sec", "s"},
                                          {"second", "s"},
                                          {"seconds", "s"},
                                          {"min", "m"},
                                          {"minute", "m"},
                                          {"minutes", "m"},
                                          {"hour", "h"},
                                          {"hours", "h"},
                                          {"hr", "h"},
                                          {"day", "d"},
                                          {"days", "d"},
                                          {"week", "7d"},
                                          {"w", "7d"},
                                          {"month", "30d"},
                                          {"S", "s"},
                                          {"M", "m"},
                                          {"year", "365d"}}};

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

std::unexpected<Error> RefuseLimit(std::string_view text, std::string_view why) {
  std::string message = "`";
  message += text;
  message += "` ";
  message += why;
  return std::unexpected(Error{ErrorCode::kBadQuota, std::move(message)});
}

Result<std::int64_t> ParseCount(std::string_view text, std::string_view count) {
  if (!count.empty() && count.front() == '-') return RefuseLimit(text, "has a negative count");
  if (count.empty() || !std::all_of(count.begin(), count.end(), IsDigit)) {
    return RefuseLimit(text,
                       count.find('.') != std::string_view::npos
                           ? "does not begin with a whole number; for 1.5/s write 3/2s"
                           : "does not begin with a whole number in plain digits, as in 100/s");
  }
  if (count.front() == '0') {
    return RefuseLimit(text, count.size() == 1
                                 ? "would refuse every request; to refuse all, use `deny`"
                                 : "begins with a zero; write plain decimal digits");
  }
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(count.data(), count.data() + count.size(), value);
  if (error != std::errc{}) return RefuseLimit(text, "has a count beyond 2^63");
  return value;
}

Result<Micros> ParsePeriod(std::string_view text, std::string_view period) {
  const auto digits = static_cast<std::size_t>(
      std::find_if_not(period.begin(), period.end(), IsDigit) - period.begin());
  const std::string_view unit = period.substr(digits);
  for (const DurationUnit& known : kDurationUnits) {
    if (digits == 0 && known.name == unit) return known.length;
  }
  for (const Word& word : kWords) {
    if (word.word == unit) {
      return RefuseLimit(text, "has a period in `" + std::string{unit} + "`; write `" +
                                   std::string{word.unit} + "`");
    }
  }
  if (unit == "ns") return RefuseLimit(text, "has too short a period: the shortest is 1us");
  if (unit == "y") return RefuseLimit(text, "has too long a period: the longest is 366d");
  if (digits == 0 || std::none_of(kDurationUnits.begin(), kDurationUnits.end(),
                                  [&](const DurationUnit& known) { return known.name == unit; })) {
    return RefuseLimit(
        text,
        "has no period that can be read; write a unit (us, ms, s, m, h or d), with or "
        "without a whole number before it, as in 100/s or 1000/24h");
  }
  const auto parsed = ParseDuration(period);
  if (!parsed || *parsed > kLongest) {
    return RefuseLimit(text, "has too long a period: the longest is 366d");
  }
  if (*parsed == Micros{0}) return RefuseLimit(text, "has too short a period: the shortest is 1us");
  return *parsed;
}

}  // namespace

Result<LimitText> LimitText::Parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    return RefuseLimit(text, "is not a limit: write a count and a period, as in 100/s or 1000/24h");
  }
  if (text.find(' ') != std::string_view::npos) {
    return RefuseLimit(text, "holds a space; write it as in 100/s or 1000/24h");
  }
  const auto count = ParseCount(text, text.substr(0, slash));
  if (!count) return std::unexpected(count.error());
  const auto period = ParsePeriod(text, text.substr(slash + 1));
  if (!period) return std::unexpected(period.error());
  return LimitText{*count, *period};
}

std::string LimitText::Text() const {
  const auto* const unit = std::find_if(
      kDurationUnits.begin(), kDurationUnits.end(),
      [this](const DurationUnit& u) { return period.count() % u.length.count() == 0; });
  const std::int64_t number = period.count() / unit->length.count();
  std::string text = std::to_string(count) + "/";
  if (number != 1) text += std::to_string(number);
  return text + std::string{unit->name};
}

std::string QuotaText(const Quota& quota, std::string_view written) {
  std::string limit =
      written.empty() ? LimitText{quota.limit(), quota.period()}.Text() : std::string{written};
  const bool bucket =
      quota.algorithm() == Algorithm::kTokenBucket || quota.algorithm() == Algorithm::kGcra;
  if (bucket && quota.capacity() != quota.limit()) {
    return limit + ", burst " + std::to_string(quota.capacity());
  }
  if (quota.algorithm() != Algorithm::kConcurrency) return limit;
  const std::size_t slash = limit.find('/');
  std::string lease = limit.substr(slash + 1);
  if (!IsDigit(lease.front())) lease.insert(0, "1");
  return limit.substr(0, slash) + " at once, lease " + lease;
}

}  // namespace tidegate

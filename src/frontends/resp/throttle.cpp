// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/throttle.hpp"

#include <charconv>
#include <chrono>
#include <limits>
#include <numeric>

#include "decision/answer.hpp"

namespace tidegate {
namespace {

/// 2^51 us, as Quota::Make allows; 71 years.
constexpr std::int64_t kMaxMicros = std::int64_t{1} << 51;
constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

struct Range {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
};
constexpr Range kBurst{"max_burst", 0, kMaxMicros - 1};
constexpr Range kCount{"count", 1, kMaxInteger};
constexpr Range kPeriod{"period", 1, kMaxMicros / 1'000'000};
constexpr Range kQuantity{"quantity", 0, kMaxInteger};

bool ReadIn(const Range& range, std::string_view text, std::int64_t& number, std::string& problem) {
  bool read = ReadInteger(text, number);
  // redis-cell takes a sign `+`, too.
  if (!read && text.size() > 1 && text[0] == '+' && text[1] != '-') {
    read = ReadInteger(text.substr(1), number);
  }
  if (read && number >= range.least && number <= range.most) return true;
  problem = std::string(range.name) + " must be an integer between " + std::to_string(range.least) +
            " and " + std::to_string(range.most);
  return false;
}

}  // namespace

bool ReadInteger(std::string_view text, std::int64_t& number) noexcept {
  if (text.size() - 1 < 9 && text[0] != '-') {  // One to nine digits: the common case.
    std::int64_t value = 0;
    for (const char c : text) {
      const auto digit = static_cast<unsigned char>(c - '0');
      if (digit > 9) return false;
      value = value * 10 + digit;
    }
    number = value;
    return true;
  }
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end && !text.empty();
}

bool ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle,
                  std::string& problem) {
  if (arguments.size() != 5 && arguments.size() != 6) {
    problem = "CL.THROTTLE takes: key max_burst count period_seconds [quantity]";
    return false;
  }
  throttle.key = arguments[1];
  std::int64_t burst = 0;
  std::int64_t period = 0;
  QuotaSpec& quota = throttle.quota;
  if (!ReadIn(kBurst, arguments[2], burst, problem) ||
      !ReadIn(kCount, arguments[3], quota.limit, problem) ||
      !ReadIn(kPeriod, arguments[4], period, problem) ||
      (arguments.size() == 6 && !ReadIn(kQuantity, arguments[5], throttle.quantity, problem))) {
    return false;
  }
  if (throttle.quantity > kMaxCost && throttle.quantity <= burst + 1) {
    problem = "quantity " + std::to_string(throttle.quantity) + " is too large: at most " +
              std::to_string(kMaxCost) + " units can be charged at once";
    return false;
  }
  quota.algorithm = Algorithm::kGcra;
  quota.origin = QuotaOrigin::kCaller;
  quota.burst = burst + 1;
  quota.period = std::chrono::seconds{period};
  return true;
}

Result<Quota> MakeThrottleQuota(const QuotaSpec& spec) {
  Result<Quota> exact = Quota::Make(spec);
  if (exact || spec.limit < 1) return exact;
  const std::int64_t nanos = spec.period.count() * 1000 / spec.limit;
  for (const std::int64_t step : {1, 10, 100, 1000}) {
    const std::int64_t rounded = nanos - nanos % step;
    if (rounded == 0) break;
    // 1000 units in `rounded` us: one in `rounded` ns.
    const std::int64_t common = std::gcd(rounded, std::int64_t{1000});
    QuotaSpec other = spec;
    other.limit = 1000 / common;
    other.period = Micros{rounded / common};
    if (Result<Quota> quota = Quota::Make(other)) return quota;
  }
  return exact;
}

ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota, std::int64_t quantity) {
  const bool counted = IsCounted(decision);
  const std::int64_t remaining = counted ? decision.remaining : 0;
  const std::int64_t reset = counted ? CellSeconds(decision.reset_after) : 0;
  bool allowed = decision.allowed;
  bool never = decision.never;
  Micros retry = decision.retry_after;
  if (quantity > kMaxCost && counted) {
    // Only a peek was sent to the store: see Throttle::IsTooLarge.
    allowed = false;
    never = true;
  } else if (quantity == 0 && counted) {
    // A quantity of 0 always fits, unless the key is in debt.
    allowed = decision.reset_after <= quota.recovery();
    retry = decision.reset_after - quota.recovery();
  }
  const std::int64_t wait = allowed || never ? -1 : CellSeconds(retry);
  return {allowed ? 0 : 1, quota.capacity(), remaining, wait, reset};
}

}  // namespace tidegate

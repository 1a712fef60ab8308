// SPDX-License-Identifier: Apache-2.0
#include "doors/resp/throttle.hpp"

#include <charconv>
#include <chrono>

#include "tidegate/charge.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t kMaxSeconds = std::int64_t{366} * 86'400;

/// Empty: good.
std::string ReadBetween(std::string_view name, std::string_view text, std::int64_t least,
                        std::int64_t most, std::int64_t& number) {
  if (ReadInteger(text, number) && number >= least && number <= most) return {};
  return std::string(name) + " must be an integer between " + std::to_string(least) + " and " +
         std::to_string(most);
}

}  // namespace

bool ReadInteger(std::string_view text, std::int64_t& number) noexcept {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end && !text.empty();
}

std::string ReadThrottle(std::span<const std::string_view> arguments, Throttle& throttle) {
  if (arguments.size() != 5 && arguments.size() != 6) {
    return "CL.THROTTLE takes: key max_burst count period_seconds [quantity]";
  }
  throttle.key = arguments[1];
  std::int64_t burst = 0;
  std::int64_t period = 0;
  QuotaSpec& quota = throttle.quota;
  quota.algorithm = Algorithm::kGcra;
  if (auto bad = ReadBetween("max_burst", arguments[2], 0, kMaxCost, burst); !bad.empty()) {
    return bad;
  }
  if (auto bad = ReadBetween("count", arguments[3], 1, kMaxCost, quota.limit); !bad.empty()) {
    return bad;
  }
  if (auto bad = ReadBetween("period", arguments[4], 1, kMaxSeconds, period); !bad.empty()) {
    return bad;
  }
  quota.burst = burst + 1;
  quota.period = std::chrono::seconds{period};
  throttle.quantity = 1;
  if (arguments.size() == 5) return {};
  return ReadBetween("quantity", arguments[5], 0, kMaxCost, throttle.quantity);
}

ThrottleAnswer AnswerThrottle(const Decision& decision, const Quota& quota, std::int64_t quantity) {
  const bool counted = decision.rung != Rung::kOpen && decision.rung != Rung::kClosed;
  const std::int64_t remaining = counted ? decision.remaining : 0;
  const std::int64_t reset = counted ? CellSeconds(decision.reset_after) : 0;
  bool allowed = decision.allowed;
  Micros retry = decision.retry_after;
  if (quantity == 0 && counted) {
    // Nothing fits always, but for a key in debt.
    allowed = decision.reset_after <= quota.recovery();
    retry = decision.reset_after - quota.recovery();
  }
  const std::int64_t wait = allowed || decision.never ? -1 : CellSeconds(retry);
  return {allowed ? 0 : 1, quota.capacity(), remaining, wait, reset};
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <iomanip>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "base/units.hpp"
#include "core/quota_scale.hpp"
#include "rules/limit_text.hpp"
#include "tidegate/rule_limiter.hpp"

namespace tidegate::cli {
namespace {

constexpr std::string_view kRule = "demo";
constexpr std::string_view kIdentity = "you";
constexpr Micros kLongestInterval = std::chrono::days{366};

constexpr bool HasWindows(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kFixedWindow || algorithm == Algorithm::kSlidingWindow;
}

/// What each algorithm does, indexed by Algorithm.
constexpr std::array<std::string_view, kAlgorithms> kDescriptions = {
    "The burst passes at once; then every refilled token lets one more pass.",
    "A place comes back only when the oldest request is a whole period old.",
    "The previous window still counts, less and less: places come back slowly.",
    "The count starts at zero in each window: around a window's start twice the limit can pass.",
    "The same answers as token_bucket, kept as one point in time instead of tokens.",
    "A place comes back when its holder is done; the second crashes, so its lease runs out."};

/// Returns a start time so late in a window that the next window begins just when the limit is used
/// up, because the algorithms differ only there.
Time Start(const DemoOptions& options) noexcept {
  const Micros period = options.period;
  const bool turns_before_used_up =
      options.every == Micros{0} || options.limit > period / options.every;
  const Micros left = turns_before_used_up ? period : options.limit * options.every;
  const Micros some_day = ManualClock{}.Now().time_since_epoch();
  return Time{some_day / period * period + period - left};
}

/// The requests that hold a place under `concurrency`. The second request crashes.
class Holders {
 public:
  Holders(const DemoOptions& options, const Quota& quota)
      : quota_(quota),
        // One interval longer than it takes to fill all places, so that some requests are denied.
        work_(
            std::max((std::min(options.limit, options.requests) + 1) * options.every, Micros{1})) {}

  /// Releases the places of requests that ended by `now`. Returns the events.
  Result<std::string> Leave(RuleLimiter& limiter, Time now) {
    std::string events;
    for (Holder& holder : holders_) {
      if (holder.gone || holder.leaves > now) continue;
      holder.gone = true;
      const auto released = limiter.Release(ChargeOf(holder.lease));
      if (!released) return std::unexpected(released.error());
      if (!events.empty()) events += ", ";
      // A lease that ran out cannot be released.
      events += holder.lease + (released == Applied::kYes ? " is done" : "'s lease ran out");
    }
    return events;
  }

  Result<Decision> Enter(RuleLimiter& limiter, std::int64_t request, Time now) {
    const std::string lease = "request " + std::to_string(request);
    auto decision = limiter.Decide(ChargeOf(lease));
    if (decision && decision->allowed) {
      const bool crashes = holders_.size() == 1;
      const Micros stays = crashes ? quota_.period() : std::min(work_, quota_.period());
      holders_.push_back({lease, now + stays, /*gone=*/false});
    }
    return decision;
  }

 private:
  [[nodiscard]] RuleCharge ChargeOf(std::string_view lease) const noexcept {
    return {.rule = kRule, .identity = kIdentity, .quota = &quota_, .lease = lease};
  }

  struct Holder {
    std::string lease;
    Time leaves;
    bool gone;
  };

  const Quota& quota_;
  Micros work_;
  std::vector<Holder> holders_;
};

void PrintRow(std::ostream& out, Micros time, const Decision& decision, std::string_view event) {
  out << std::setw(9) << FormatDuration(time) << "  " << (decision.allowed ? "allowed" : "denied ")
      << std::setw(11) << decision.remaining << std::setw(14)
      << (decision.allowed ? "-" : FormatDuration(decision.retry_after)) << std::setw(14)
      << FormatDuration(decision.reset_after);
  if (!event.empty()) out << "   " << event;
  out << '\n';
}

/// Prints one table: the same caller sends `requests` requests.
Result<void> RunOne(const DemoOptions& options, const Quota& quota, std::ostream& out) {
  const Time start = Start(options);
  ManualClock clock{start};
  RuleLimiter limiter{{.max_keys = 1, .clock = &clock}};
  Holders holders{options, quota};
  std::int64_t passed = 0;

  out << Name(quota.algorithm()) << ": " << QuotaText(quota) << "\n  "
      << kDescriptions[static_cast<std::size_t>(quota.algorithm())] << "\n\n"
      << std::setw(9) << "time"
      << "  answer " << std::setw(11) << "remaining" << std::setw(14) << "retry after"
      << std::setw(14) << "reset after" << '\n';
  for (std::int64_t request = 1; request <= options.requests; ++request) {
    const Time now = clock.Now();
    std::string event;
    Result<Decision> decision;
    if (quota.algorithm() == Algorithm::kConcurrency) {
      auto left = holders.Leave(limiter, now);
      if (!left) return std::unexpected(left.error());
      event = *std::move(left);
      decision = holders.Enter(limiter, request, now);
    } else {
      decision = limiter.Decide(kRule, kIdentity, quota);
    }
    if (!decision) return std::unexpected(decision.error());
    const Time before = request == 1 ? now : now - options.every;
    if (HasWindows(quota.algorithm()) &&
        before.time_since_epoch() / options.period != now.time_since_epoch() / options.period) {
      event = "a new window";
    }
    PrintRow(out, now - start, *decision, event);
    if (decision->allowed) ++passed;
    clock.Advance(options.every);
  }
  out << "  " << passed << " of " << options.requests << " passed\n\n";
  return {};
}

/// Returns the quotas. Only buckets get the burst; another algorithm chosen by name rejects it.
Result<std::vector<Quota>> Quotas(const DemoOptions& options) {
  std::vector<Quota> quotas;
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (options.algorithm && *options.algorithm != algorithm) continue;
    const bool burst = options.algorithm || IsBucket(algorithm);
    auto quota = Quota::Make({.algorithm = algorithm,
                              .limit = options.limit,
                              .period = options.period,
                              .burst = burst ? options.burst : 0});
    if (!quota) return std::unexpected(quota.error());
    quotas.push_back(*quota);
  }
  return quotas;
}

}  // namespace

Result<void> RunDemo(const DemoOptions& options, std::ostream& out) {
  // With this interval, 10,000 requests still end before the clock does.
  if (options.every > kLongestInterval) {
    return Failure(ErrorCode::kBadArgument,
                   "the requests are more than 366 days apart; send them more often");
  }
  const auto quotas = Quotas(options);
  if (!quotas) return std::unexpected(quotas.error());
  out << "One caller, " << options.requests << " requests, one every "
      << FormatDuration(options.every) << ", in virtual time.\n\n";
  for (const Quota& quota : *quotas) {
    if (auto done = RunOne(options, quota, out); !done) return done;
  }
  out << "Try next: tidegate demo"
      << (options.algorithm
              ? ", which shows all six algorithms side by side.\n"
              : " --algorithm token_bucket --limit 5 --burst 10 --every 50ms --requests 30\n");
  return {};
}

}  // namespace tidegate::cli

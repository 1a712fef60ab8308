// SPDX-License-Identifier: Apache-2.0
#include "cli/demo.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/duration.hpp"
#include "rules/limit_text.hpp"
#include "tidegate/limiter.hpp"

namespace tidegate::cli {
namespace {

constexpr std::string_view kRule = "demo";
constexpr std::string_view kIdentity = "you";
constexpr Micros kLongestInterval = std::chrono::days{366};

constexpr bool IsBucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
}

constexpr bool HasWindows(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kFixedWindow || algorithm == Algorithm::kSlidingWindow;
}

std::string_view WhatToSee(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return "The burst passes at once; then every refilled token lets one more pass.";
    case Algorithm::kSlidingLog:
      return "A place comes back only when the oldest request is a whole period old.";
    case Algorithm::kSlidingWindow:
      return "The window before weighs on the new one, less and less: places come back slowly.";
    case Algorithm::kFixedWindow:
      return "The count starts anew with each window: around that moment twice the limit can pass.";
    case Algorithm::kGcra:
      return "The same answers as token_bucket, kept as one point in time instead of tokens.";
    case Algorithm::kConcurrency:
      return "A place comes back when its holder is done; the second crashes, so its lease runs "
             "out.";
  }
  std::unreachable();
}

std::string Heading(const Quota& quota) {
  return std::string{Name(quota.algorithm())} + ": " + QuotaText(quota);
}

/// So late in a window that it turns just when the limit is used up: only there
/// do the algorithms differ.
Time Start(const DemoOptions& options) noexcept {
  const Micros period = options.period;
  const bool turns_before_used_up =
      options.every == Micros{0} || options.limit > period / options.every;
  const Micros left = turns_before_used_up ? period : options.limit * options.every;
  const Micros some_day = ManualClock{}.Now().time_since_epoch();
  return Time{some_day / period * period + period - left};
}

/// Those who hold a place under `concurrency`: each is done after a while, but
/// the second to get one crashes.
class Holders {
 public:
  Holders(const DemoOptions& options, const Quota& quota) : quota_(quota), work_(Work(options)) {}

  /// Gives back the places of those who are done by `now`; returns what happened.
  Result<std::string> Leave(Limiter& limiter, Time now) {
    std::string events;
    for (Holder& holder : holders_) {
      const Micros stays = holder.crashed ? quota_.period() : std::min(work_, quota_.period());
      if (holder.gone || holder.since + stays > now) continue;
      holder.gone = true;
      const std::string lease = LeaseId(holder.request);
      const auto released = limiter.store().Release(
          {.rule = kRule, .identity = kIdentity, .quota = &quota_, .lease = lease});
      if (!released) return std::unexpected(released.error());
      if (!events.empty()) events += ", ";
      // A lease that ran out is gone before anybody releases it.
      events += lease + (released == Done::kApplied ? " is done" : "'s lease ran out");
    }
    return events;
  }

  Result<Decision> Enter(Limiter& limiter, std::int64_t request, Time now) {
    auto decision = limiter.Acquire(kRule, kIdentity, quota_, LeaseId(request));
    if (decision && decision->allowed) {
      holders_.push_back({request, now, /*crashed=*/holders_.size() == 1, /*gone=*/false});
    }
    return decision;
  }

 private:
  struct Holder {
    std::int64_t request;
    Time since;
    bool crashed;
    bool gone;
  };

  /// One interval longer than it takes to fill all places, so that some are refused.
  static Micros Work(const DemoOptions& options) noexcept {
    const std::int64_t intervals = std::min(options.limit, options.requests) + 1;
    return std::max(intervals * options.every, Micros{1});
  }
  static std::string LeaseId(std::int64_t request) { return "request " + std::to_string(request); }

  const Quota& quota_;
  Micros work_;
  std::vector<Holder> holders_;
};

void PrintHeader(std::ostream& out) {
  out << std::setw(9) << "time"
      << "  answer " << std::setw(11) << "remaining" << std::setw(14) << "retry after"
      << std::setw(14) << "reset after" << '\n';
}

void PrintRow(std::ostream& out, Micros time, const Decision& decision, std::string_view event) {
  out << std::setw(9) << FormatDuration(time) << "  " << (decision.allowed ? "allowed" : "denied ")
      << std::setw(11) << decision.remaining << std::setw(14)
      << (decision.allowed ? "-" : FormatDuration(decision.retry_after)) << std::setw(14)
      << FormatDuration(decision.reset_after);
  if (!event.empty()) out << "   " << event;
  out << '\n';
}

/// One table: the same caller asks `requests` times.
Result<void> RunOne(const DemoOptions& options, const Quota& quota, std::ostream& out) {
  const Time start = Start(options);
  ManualClock clock{start};
  Limiter limiter{MemoryOptions{.max_keys = 1, .clock = &clock}};
  Holders holders{options, quota};
  std::int64_t passed = 0;

  out << Heading(quota) << '\n' << "  " << WhatToSee(quota.algorithm()) << "\n\n";
  PrintHeader(out);
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

/// The burst belongs to buckets; asked for by name, any other algorithm refuses it.
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
  // 10,000 requests so far apart still end before the clock does.
  if (options.every > kLongestInterval) {
    return std::unexpected(Error{
        ErrorCode::kBadQuota, "the requests are more than 366 days apart; send them more often"});
  }
  const auto quotas = Quotas(options);
  if (!quotas) return std::unexpected(quotas.error());
  out << "One caller, " << options.requests << " requests, one every "
      << FormatDuration(options.every) << ", in virtual time.\n\n";
  for (const Quota& quota : *quotas) {
    if (auto done = RunOne(options, quota, out); !done) return done;
  }
  out << "Try next: ";
  if (options.algorithm) {
    out << "tidegate demo, which shows all six algorithms side by side.\n";
  } else {
    out << "tidegate demo --algorithm token_bucket --limit 5 --burst 10 --every 50ms "
           "--requests 30\n";
  }
  return {};
}

}  // namespace tidegate::cli

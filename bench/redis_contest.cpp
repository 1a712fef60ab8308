// SPDX-License-Identifier: Apache-2.0
#include "redis_contest.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace tidegate::bench {
namespace {

constexpr int kBaselineConnections = 256;
constexpr double kLong = 60;

double Quotient(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

/// Calls `ask`, which returns the number of decisions and how many of them were allowed, and adds
/// its cost to `side`.
template <typename Ask>
void Measure(Contest::Side& side, const redis_test::RedisServer& server, const Ask& ask) {
  const auto begun = std::chrono::steady_clock::now();
  const double before = server.CpuSeconds();
  const auto outcome = ask();
  const double used = server.CpuSeconds() - before;
  side.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  side.decisions += outcome.decisions;
  side.allowed += outcome.allowed;
  side.micros.push_back(used * 1e6 / static_cast<double>(outcome.decisions));
}

}  // namespace

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Contest::Result Contest::Run(const Load& load, const Rounds& rounds) {
  (void)server_.Text({"FLUSHALL"});
  ClosedLoop loop(host_, identities_);
  Baseline baseline(server_, load.baseline, identities_, load.quota, kBaselineConnections);
  Draws our_draws = load.draws;
  Draws baseline_draws = load.draws;
  const auto ours = [&](Draws& draws, double seconds, std::uint64_t most) {
    const auto outcome = loop.Run({&draws, &load.quota, load.concurrent, seconds, most});
    if (outcome.inexact > 0) {
      throw std::runtime_error("Redis did not answer " + std::to_string(outcome.inexact) + " of " +
                               std::to_string(outcome.decisions) + " questions in time");
    }
    return outcome;
  };

  for (Draws each = Draws::Each(load.keys); const bool mine : {true, false}) {
    Draws from_the_first = each;
    if (mine) {
      (void)ours(from_the_first, kLong, load.keys);
    } else {
      (void)baseline.Run(from_the_first, kLong, load.keys);
    }
  }
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  (void)ours(our_draws, load.warm_seconds, kAll);
  (void)baseline.Run(baseline_draws, load.warm_seconds);

  Result result;
  const redis::ClientStats& stats = host_.redis_store().redis_stats();
  const std::uint64_t calls = stats.calls.get();
  const std::uint64_t keys = stats.keys.get();
  const std::uint64_t batches = stats.batches.get();
  std::vector<double> ratios;
  for (int i = 0; i < rounds.count; ++i) {
    Measure(result.ours, server_, [&] { return ours(our_draws, rounds.seconds, kAll); });
    Measure(result.baseline, server_, [&] { return baseline.Run(baseline_draws, rounds.seconds); });
    ratios.push_back(result.ours.micros.back() / result.baseline.micros.back());
  }
  result.ratio = Median(std::move(ratios));
  const std::uint64_t sent = stats.batches.get() - batches;
  result.calls_per_batch = Quotient(stats.calls.get() - calls, sent);
  result.keys_per_batch = Quotient(stats.keys.get() - keys, sent);
  return result;
}

}  // namespace tidegate::bench

// SPDX-License-Identifier: Apache-2.0
// Compares the cost of decisions for Redis with the cost of the usual script, called once per
// request, in one run. Redis runs on one core, and the clients on another core send requests in
// turns. Usage: redis_bench TIDEGATE [--quick] [ROW...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "redis_contest.hpp"
#include "redis_fleet.hpp"
#include "redis_pace.hpp"

namespace tidegate::bench {
namespace {

using std::chrono::seconds;

constexpr int kRedisCore = 0;
constexpr int kLoadCore = 1;
constexpr std::uint32_t kKeys = 100'000;
constexpr double kZipf = 1.1;

Quota Bucket(std::int64_t limit, Micros period, std::int64_t burst = 0) {
  return Quota::Make({.limit = limit, .period = period, .burst = burst}).value();
}

// With these quotas every used key lives for a minute on either side, so that no key expires during
// the measurement.
Quota Wide() { return Bucket(6'000, seconds{60}); }
Quota Endless() { return Bucket(60'000'000, seconds{60}); }
// Under the baseline's load some hundred keys exceed 10/s; they get two thirds of all requests.
Quota Tight() { return Bucket(600, seconds{60}, 60); }

double Percentile(const std::vector<double>& sorted, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
  return sorted.at(std::min(at, sorted.size() - 1));
}

class RedisBench {
 public:
  explicit RedisBench(const BenchOptions& options) : options_(options) {}

  /// Runs all rows. Returns true if all ratios are within their bars.
  bool Run() {
    {
      const AwakeCores awake{kRedisCore, kLoadCore};
      Compare();
      Flood("flood", Bucket(1, seconds{10}), options_.quick ? 4 : 10.5);
      Flood("flood-often", Bucket(10, seconds{1}, 1), options_.quick ? 1 : 3);
      Beside();
    }
    AskFleet("fleet-zipf", Draws::Zipf(kKeys, kZipf));
    AskFleet("fleet-uniform", Draws::Uniform(kKeys));
    return held_;
  }

 private:
  const char* Judge(bool holds) {
    held_ = held_ && holds;
    return holds ? "holds" : "MISSED";
  }

  void Compare();
  void Compare(const char* name, const Contest::Load& load, std::optional<double> bar);
  void Flood(const char* name, const Quota& quota, double window);
  void Beside();
  void AskFleet(const char* name, Draws draws);
  [[nodiscard]] std::uint64_t EvalshaCalls();

  const BenchOptions options_;
  bool held_ = true;
  const std::vector<std::string> identities_ = Identities(kKeys);
  redis_test::RedisServer server_{{.core = kRedisCore}};
  RedisStoreHost host_{server_.port(), kLoadCore};
};

void RedisBench::Compare() {
  std::printf(
      "Redis's CPU time per decision, medians of rounds in turn. base: the usual script, one "
      "EVALSHA "
      "per request\non 256 connections; of the row commands: HMGET, HMSET and EXPIRE. calls, keys: "
      "in a batch.\n");
  std::printf("%-14s %10s %10s %8s  %-16s %12s %11s %11s %7s %7s\n", "", "ours, us", "base, us",
              "ratio", "bar", "calls, keys", "ours, /s", "base, /s", "denied", "(base)");
  Compare("uniform", {Draws::Uniform(kKeys), kKeys, Wide()}, 0.4);
  Compare("zipf", {Draws::Zipf(kKeys, kZipf), kKeys, Endless()}, 0.25);
  Compare("zipf-over",
          {.draws = Draws::Zipf(kKeys, kZipf), .keys = kKeys, .quota = Tight(), .warm_seconds = 1},
          0.15);
  Compare("hot-256", {Draws::Only(0), 1, Endless()}, 0.03);
  Compare("hot-2048", {Draws::Only(0), 1, Endless(), 2048}, 0.01);
  Compare("commands", {Draws::Uniform(kKeys), kKeys, Wide(), 256, Baseline::Way::kCommands},
          std::nullopt);
}

void RedisBench::Compare(const char* name, const Contest::Load& load, std::optional<double> bar) {
  if (!options_.Wants(name)) return;
  Contest contest(server_, host_, identities_);
  const auto result = contest.Run(load, options_.quick ? Contest::Rounds{5, 0.1}  //
                                                       : Contest::Rounds{15, 0.2});
  char verdict[32] = "none";
  if (bar) std::snprintf(verdict, sizeof verdict, "<= %.2fx %s", *bar, Judge(result.ratio <= *bar));
  std::printf("%-14s %10.3f %10.3f %7.4fx  %-16s %6.1f %5.1f %11.0f %11.0f %6.1f%% %6.1f%%\n", name,
              Median(result.ours.micros), Median(result.baseline.micros), result.ratio, verdict,
              result.calls_per_batch, result.keys_per_batch, result.ours.per_second(),
              result.baseline.per_second(), 100 * result.ours.denied_share(),
              100 * result.baseline.denied_share());
  std::fflush(stdout);
}

std::uint64_t RedisBench::EvalshaCalls() {
  constexpr std::string_view kBefore = "cmdstat_evalsha:calls=";
  const std::string info = server_.Text({"INFO", "commandstats"});
  const std::size_t at = info.find(kBefore);
  return at == std::string::npos ? 0 : std::stoull(info.substr(at + kBefore.size()));
}

/// Measures how often denied requests reach Redis: only when they may be allowed again, and after
/// DenyCache::kCap.
void RedisBench::Flood(const char* name, const Quota& quota, double window) {
  if (!options_.Wants(name)) return;
  ClosedLoop loop(host_, identities_);
  Draws draws = Draws::Only(0);
  (void)loop.Run({&draws, &quota, 256, 0.2});  // Sends requests until the key is denied.
  const std::uint64_t before = EvalshaCalls();
  const auto outcome = loop.Run({&draws, &quota, 256, window});
  // Requests that a refill allows are not denials and must reach Redis.
  const auto calls =
      static_cast<double>(EvalshaCalls() - before) - static_cast<double>(outcome.allowed);
  const double retry_after = std::chrono::duration<double>(quota.recovery()).count();
  const double bound = 1 / retry_after + 1 / std::chrono::duration<double>(DenyCache::kCap).count();
  // A window that is not a multiple of the interval may contain one call more.
  std::printf(
      "%-14s %.3f EVALSHA/s for denials in %.1f s (<= %.3f, %.0f calls and one at the edge) %s; "
      "%.0f decisions/s\n",
      name, calls / outcome.seconds, outcome.seconds, bound, bound * outcome.seconds,
      Judge(outcome.inexact == 0 && calls <= bound * outcome.seconds + 1),
      static_cast<double>(outcome.decisions) / outcome.seconds);
  std::fflush(stdout);
}

void RedisBench::Beside() {
  if (!options_.Wants("beside")) return;
  constexpr std::uint32_t kOthers = 1000;
  constexpr double kPerSecond = 5000;
  constexpr double kBar = 2;
  const double seconds_each = options_.quick ? 0.3 : 0.5;
  ClosedLoop hot(host_, identities_);
  PacedLoop others(host_, identities_);
  Draws hot_draws = Draws::Only(kKeys - 1);
  Draws draws = Draws::Uniform(kOthers);
  const Quota endless = Endless();
  const Quota wide = Wide();
  std::vector<double> alone;
  std::vector<double> beside;
  std::vector<double> middle_alone;
  std::vector<double> middle_beside;
  std::vector<double> ratios;
  std::uint64_t inexact = 0;
  for (int round = 0; round < (options_.quick ? 5 : 9); ++round) {
    const auto calm = others.Run({&draws, &wide, kPerSecond, seconds_each});
    hot.Begin({&hot_draws, &endless, 256, seconds_each + 0.05});
    const auto busy = others.Run({&draws, &wide, kPerSecond, seconds_each});
    inexact += calm.inexact + busy.inexact + hot.Wait().inexact;
    alone.push_back(Percentile(calm.micros, 0.99));
    beside.push_back(Percentile(busy.micros, 0.99));
    middle_alone.push_back(Percentile(calm.micros, 0.5));
    middle_beside.push_back(Percentile(busy.micros, 0.5));
    ratios.push_back(beside.back() / alone.back());
  }
  const double ratio = Median(ratios);
  std::printf(
      "%-14s %u keys at %.0f/s alone: p50 %.0f us, p99 %.0f us; beside a hot key: %.0f us, %.0f "
      "us; "
      "p99 %.2fx (<= %.0fx) %s\n",
      "beside", kOthers, kPerSecond, Median(middle_alone), Median(alone), Median(middle_beside),
      Median(beside), ratio, kBar, Judge(inexact == 0 && ratio <= kBar));
  std::fflush(stdout);
}

void RedisBench::AskFleet(const char* name, Draws draws) {
  if (!options_.Wants(name)) return;
  (void)server_.Text({"FLUSHALL"});
  // Three servers and the load share two cores: Redis shares one core with a tidegate, the load
  // shares the other with the other tidegate.
  Fleet fleet(options_.tidegate, server_, {kRedisCore, kLoadCore}, "60000000/m");
  const auto outcome = fleet.Ask(identities_, draws, 50'000, options_.quick ? 1 : 4);
  const auto answers = static_cast<double>(outcome.micros.size());
  std::printf(
      "%-14s two processes, %.0f requests/s: p50 %.0f us, p99 %.0f us, p99.9 %.0f us; %.2f%% 200, "
      "%.2f%% by Redis\n",
      name, answers / outcome.seconds, Percentile(outcome.micros, 0.5),
      Percentile(outcome.micros, 0.99), Percentile(outcome.micros, 0.999),
      100 * static_cast<double>(outcome.ok) / answers,
      100 * static_cast<double>(outcome.exact) / answers);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    const BenchOptions options = BenchOptions::Parse("redis_bench", argc, argv);
    PinTo(kLoadCore);
    return RedisBench(options).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "redis_bench: %s\n", error.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Measures the pure step functions, without a table, a lock or a clock.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/concurrency.hpp"
#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/sliding_log.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

const Time kStart{std::chrono::hours{500'000}};

/// Each step comes one to four microseconds after the last, so that there is something to refill.
/// `limit` units per second determine how many steps are admitted.
template <auto kFresh, auto kStep>
void Step(benchmark::State& state, Algorithm algorithm, std::int64_t limit) {
  const Quota quota = Quota::Make({.algorithm = algorithm, .limit = limit}).value();
  auto current = kFresh(quota, kStart);
  Time now = kStart;
  std::int64_t i = 0;
  for (auto _ : state) {
    now += Micros{1 + (++i & 3)};
    const auto stepped = kStep(current, quota, 1, 1, now);
    current = stepped.next;
    benchmark::DoNotOptimize(stepped.outcome);
  }
}

template <auto kFresh, auto kStep>
void Register(Algorithm algorithm) {
  struct Load {
    const char* name;
    std::int64_t limit;
  };
  for (const auto& [name, limit] :
       {Load{"allowed", 1'000'000}, Load{"denied", 1'000}, Load{"allowed_3_grains", 3'000'001}}) {
    benchmark::RegisterBenchmark((std::string(Name(algorithm)) + "/" + name).c_str(),
                                 [algorithm, limit = limit](benchmark::State& state) {
                                   Step<kFresh, kStep>(state, algorithm, limit);
                                 });
  }
}

void SlidingLog(benchmark::State& state) {
  const std::int64_t limit = state.range(0);
  const Quota quota =
      Quota::Make(
          {.algorithm = Algorithm::kSlidingLog, .limit = limit, .period = Micros{2 * limit}})
          .value();
  std::vector<sliding_log::Entry> memory(static_cast<std::size_t>(limit));
  sliding_log::Log log(memory.data(), static_cast<std::uint32_t>(limit));
  Time now = kStart;
  for (auto _ : state) {
    now += 1us;  // Half of the steps are admitted.
    const auto plan = sliding_log::Step(log, quota, 1, 1, now);
    sliding_log::Commit(log, quota, plan.change);
    benchmark::DoNotOptimize(plan.outcome);
  }
}

void Concurrency(benchmark::State& state) {
  const std::int64_t limit = state.range(0);
  const Quota quota =
      Quota::Make({.algorithm = Algorithm::kConcurrency, .limit = limit, .period = 1h}).value();
  std::vector<concurrency::Lease> memory(static_cast<std::size_t>(limit));
  concurrency::Leases leases(memory.data(), static_cast<std::uint32_t>(limit));
  Time now = kStart;
  std::uint64_t next = 0;
  const auto acquire = [&] {
    const auto plan = concurrency::Acquire(leases, quota, {1, next++}, 1, 1, now);
    concurrency::Commit(leases, quota, plan.change, now);
    return plan.outcome;
  };
  for (std::int64_t i = 1; i < limit; ++i) acquire();
  // All leases but one are held: the oldest expires and a new one is acquired.
  for (auto _ : state) {
    now += 1us;
    benchmark::DoNotOptimize(acquire());
    benchmark::DoNotOptimize(
        concurrency::Release(leases, quota, {1, next - static_cast<std::uint64_t>(limit)}, now));
  }
}

}  // namespace
}  // namespace tidegate

int main(int argc, char** argv) {
  using namespace tidegate;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Register<token_bucket::Fresh, token_bucket::Step>(Algorithm::kTokenBucket);
  Register<gcra::Fresh, gcra::Step>(Algorithm::kGcra);
  Register<fixed_window::Fresh, fixed_window::Step>(Algorithm::kFixedWindow);
  Register<sliding_window::Fresh, sliding_window::Step>(Algorithm::kSlidingWindow);
  benchmark::RegisterBenchmark("sliding_log", SlidingLog)->Arg(10)->Arg(1000)->Arg(10'000);
  benchmark::RegisterBenchmark("concurrency/acquire_release", Concurrency)->Arg(10)->Arg(1000);
  benchmark::RunSpecifiedBenchmarks();
}

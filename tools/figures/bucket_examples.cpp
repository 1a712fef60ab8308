// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/gcra.hpp"
#include "core/quota_scale.hpp"
#include "core/token_bucket.hpp"
#include "example_table.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

std::string Text(const token_bucket::State& s) {
  return Grouped(s.tokens) + ", " + Ticks(s.last_refill) + ", " + Grouped(s.rest);
}
std::string Text(const gcra::State& s) {
  return Ticks(s.tat) + ", " + Grouped(s.rest) + ", " + Grouped(s.owed);
}

enum class Call { kStep, kDebit, kRefund };

struct Event {
  std::int64_t at;
  Call call;
  std::int64_t cost;
  std::int64_t count = 1;
};

/// Events at a limit of 3/s, where one unit takes 333,333.3 us, so that no time divides evenly.
constexpr Event kHistory[] = {
    {0, Call::kStep, 1, 2},         {0, Call::kStep, 3},         {0, Call::kStep, 1},
    {333'333, Call::kStep, 1},      {333'334, Call::kStep, 1},   {333'334, Call::kStep, 6},
    {500'000, Call::kDebit, 4},     {500'000, Call::kStep, 1},   {600'000, Call::kRefund, 2},
    {600'000, Call::kStep, 1},      {1'333'333, Call::kStep, 1}, {1'333'334, Call::kStep, 1},
    {4'000'000, Call::kStep, 2, 9},
};
constexpr Event kClock[] = {
    {10'000'000, Call::kStep, 5}, {9'500'000, Call::kStep, 1}, {8'000'000, Call::kStep, 1},
    {8'000'000, Call::kStep, 1},  {8'333'334, Call::kStep, 1},
};

/// Two of five units are used, then the clock is half a second behind.
constexpr Event kPartly[] = {
    {20'000'000, Call::kStep, 2},
    {19'500'000, Call::kStep, 2},
};

template <auto kStep, auto kDebit, auto kRefund, class State>
void Run(State state, const Quota& quota, std::span<const Event> events) {
  for (const auto& [at, call, cost, count] : events) {
    const Time now = kZero + Micros{at};
    const auto stepped = call == Call::kStep    ? kStep(state, quota, cost, count, now)
                         : call == Call::kDebit ? kDebit(state, quota, cost, now)
                                                : kRefund(state, quota, cost, now, now);
    state = stepped.next;
    std::string text = call == Call::kStep    ? "cost " + std::to_string(cost)
                       : call == Call::kDebit ? "debit " + std::to_string(cost)
                                              : "refund " + std::to_string(cost);
    if (count != 1) text.insert(0, std::to_string(count) + " of ");
    TableRow(now, text, call == Call::kStep ? count : 0, stepped.outcome, Text(state));
  }
}

void PrintGrains() {
  std::puts("\n### grains\n");
  std::puts(
      "| quota | grains per tick | grains per unit | capacity in grains | recovery | largest "
      "burst | saturation |");
  std::puts("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
  struct Row {
    const char* name;
    std::int64_t limit;
    Micros period;
    std::int64_t burst;
  };
  using namespace std::chrono_literals;
  for (const auto& [name, limit, period, burst] :
       {Row{"3/s, burst 5", 3, 1s, 5}, Row{"100/s, burst 200", 100, 1s, 200},
        Row{"5,000,000/s", 5'000'000, 1s, 0}, Row{"100/min", 100, 1min, 0},
        Row{"100,000/24h", 100'000, 24h, 0}, Row{"999,983/24h", 999'983, 24h, 0},
        Row{"999,983/24h, burst 1,000", 999'983, 24h, 1000}, Row{"7/366d", 7, 24h * 366, 0}}) {
    const auto quota = Quota::Make({.limit = limit, .period = period, .burst = burst});
    if (!quota) {
      std::printf("| %s | refused: %s |\n", name, quota.error().message.c_str());
      continue;
    }
    const Quota& q = *quota;
    // The greatest cost that passes, found by trying costs and not by a formula.
    std::int64_t most = 1;
    std::int64_t step = std::int64_t{1} << 51;
    for (; step > 0; step /= 2) {
      if (Quota::Make({.limit = limit, .period = period, .burst = most + step})) most += step;
    }
    std::printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, Grouped(GrainsPerTick(q)).c_str(),
                Grouped(GrainsPerUnit(q)).c_str(), Grouped(q.capacity() * GrainsPerUnit(q)).c_str(),
                Grouped(q.recovery().count()).c_str(), Grouped(most).c_str(),
                Grouped(Saturation(q)).c_str());
  }
}

/// Prints the effect of a changed limit or burst on a state with 6 of 10 units used at 1/s, at the
/// same moment.
template <auto kFresh, auto kStep>
void PrintChanges(Algorithm algorithm) {
  std::printf("\n### %s: a changed quota\n\n", std::string(Name(algorithm)).c_str());
  std::puts("| then | remaining | reset_after |\n| --- | ---: | ---: |");
  const Quota old = MakeQuota({.algorithm = algorithm, .limit = 1, .burst = 10});
  const auto state = kStep(kFresh(old, kZero), old, 6, 1, kZero).next;
  for (const auto& [limit, burst] : {std::pair{1, 10}, {2, 10}, {4, 10}, {1, 20}, {1, 3}}) {
    const Quota quota = MakeQuota({.algorithm = algorithm, .limit = limit, .burst = burst});
    const auto o = kStep(state, quota, 1, 0, kZero).outcome;
    std::printf("| %d/s, burst %d | %s | %s |%s\n", limit, burst, Grouped(o.remaining).c_str(),
                Grouped(o.reset_after.count()).c_str(),
                o.effect == Effect::kRepaired ? " repaired" : "");
  }
}

}  // namespace

void PrintBucketExamples() {
  const Quota bucket = MakeQuota({.limit = 3, .burst = 5});
  const Quota gcra = MakeQuota({.algorithm = Algorithm::kGcra, .limit = 3, .burst = 5});
  TableHead("token_bucket, limit 3 per 1 s, burst 5; state: tokens, last_refill, rest");
  Run<token_bucket::Step, token_bucket::Debit, token_bucket::Refund>(
      token_bucket::Fresh(bucket, kZero), bucket, kHistory);
  TableHead("token_bucket, the clock");
  Run<token_bucket::Step, token_bucket::Debit, token_bucket::Refund>(
      token_bucket::Fresh(bucket, kZero), bucket, kClock);
  TableHead("token_bucket, partly used");
  Run<token_bucket::Step, token_bucket::Debit, token_bucket::Refund>(
      token_bucket::Fresh(bucket, kZero), bucket, kPartly);
  TableHead("gcra, limit 3 per 1 s, burst 5; state: tat, rest, owed");
  Run<gcra::Step, gcra::Debit, gcra::Refund>(gcra::Fresh(gcra, kZero), gcra, kHistory);
  TableHead("gcra, the clock");
  Run<gcra::Step, gcra::Debit, gcra::Refund>(gcra::Fresh(gcra, kZero), gcra, kClock);
  TableHead("gcra, partly used");
  Run<gcra::Step, gcra::Debit, gcra::Refund>(gcra::Fresh(gcra, kZero), gcra, kPartly);
  PrintGrains();
  PrintChanges<token_bucket::Fresh, token_bucket::Step>(Algorithm::kTokenBucket);
  PrintChanges<gcra::Fresh, gcra::Step>(Algorithm::kGcra);
}

}  // namespace tidegate::figures

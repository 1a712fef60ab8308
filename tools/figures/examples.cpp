// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/quota_scale.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"
#include "example_table.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

using namespace std::chrono_literals;

Time Tick(std::int64_t at) { return kZero + Micros{at}; }

std::string Text(const fixed_window::State& s) { return Ticks(s.start) + ", " + Grouped(s.count); }
std::string Text(const sliding_window::State& s) {
  return Ticks(s.start) + ", " + Grouped(s.current) + ", " + Grouped(s.previous);
}
std::string Text(const sliding_log::Log& log) {
  std::string text;
  for (std::uint32_t i = 0; i < log.size(); ++i) {
    text += (i > 0 ? "; " : "") + Ticks(log[i].at) + ": " + Grouped(log[i].units);
  }
  return text.empty() ? "empty" : text;
}
std::string Text(const concurrency::Leases& leases) {
  std::string text;
  for (const auto& lease : leases.all()) {
    text += (text.empty() ? "" : "; ") + std::string(1, static_cast<char>('a' + lease.id.low)) +
            ": " + Ticks(lease.expiry) + ", " + Grouped(lease.units);
  }
  return text.empty() ? "empty" : text;
}

/// A key of a window algorithm that prints the result of each operation.
template <class State, auto kFresh, auto kStep, auto kDebit, auto kRefund>
class WindowKey {
 public:
  explicit WindowKey(const Quota& quota) : quota_(quota), state_(kFresh(quota, kZero)) {}

  void Step(std::int64_t at, std::int64_t cost, std::int64_t count = 1) {
    const auto stepped = kStep(state_, quota_, cost, count, Tick(at));
    const std::string of = count == 1 ? "" : std::to_string(count) + " of ";
    Row(at, of + "cost " + std::to_string(cost), count, stepped);
  }
  void Debit(std::int64_t at, std::int64_t units) {
    Row(at, "debit " + std::to_string(units), 0, kDebit(state_, quota_, units, Tick(at)));
  }
  void Refund(std::int64_t at, std::int64_t units, std::int64_t charged_at) {
    Row(at, "refund " + std::to_string(units) + " of " + Grouped(charged_at), 0,
        kRefund(state_, quota_, units, Tick(charged_at), Tick(at)));
  }

 private:
  void Row(std::int64_t at, const std::string& call, std::int64_t asked,
           const Stepped<State>& stepped) {
    state_ = stepped.next;
    TableRow(Tick(at), call, asked, stepped.outcome, Text(state_));
  }

  Quota quota_;
  State state_;
};

using FixedKey = WindowKey<fixed_window::State, fixed_window::Fresh, fixed_window::Step,
                           fixed_window::Debit, fixed_window::Refund>;
using SlidingKey = WindowKey<sliding_window::State, sliding_window::Fresh, sliding_window::Step,
                             sliding_window::Debit, sliding_window::Refund>;

void PrintFixedWindow() {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 10});
  TableHead("fixed_window, limit 10 per 1 s; state: start, count");
  FixedKey key(quota);
  key.Step(900'000, 1, 12);
  key.Step(999'999, 1);
  key.Step(1'000'000, 1, 12);
  key.Refund(1'200'000, 3, 999'999);
  key.Refund(1'200'000, 3, 1'000'000);
  key.Step(1'250'000, 4);
  key.Step(1'250'000, 11);
  key.Debit(1'500'000, 25);
  key.Step(1'600'000, 1);
  key.Step(2'000'000, 1);
  TableHead("fixed_window, the clock");
  FixedKey clock(quota);
  clock.Step(5'200'000, 8);
  clock.Step(4'900'000, 1);
  clock.Step(4'900'000, 2);
  clock.Step(3'900'000, 2);
  clock.Step(4'000'000, 2);
}

void PrintSlidingWindow() {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingWindow, .limit = 10});
  TableHead("sliding_window, limit 10 per 1 s; state: start, current, previous");
  SlidingKey key(quota);
  key.Step(900'000, 1, 10);
  key.Step(900'000, 1);
  key.Step(1'099'999, 1);
  key.Step(1'100'000, 1);
  key.Step(1'500'000, 1, 9);
  key.Step(1'555'000, 6);
  key.Step(2'199'999, 6);
  key.Step(2'200'000, 6);
  key.Step(2'200'000, 11);
  key.Refund(2'300'000, 2, 1'500'000);
  key.Refund(2'300'000, 2, 900'000);
  key.Debit(2'400'000, 84);
  key.Step(2'400'000, 1);
  key.Step(3'900'000, 1);
  TableHead("sliding_window, the clock");
  SlidingKey clock(quota);
  clock.Step(4'900'000, 5);
  clock.Step(5'200'000, 6);
  clock.Step(4'999'999, 1);
  clock.Step(4'000'000, 1);
  clock.Step(3'999'999, 1);
  std::puts("\n### slices\n\n| quota | slice | slices | limit * slices | saturation |");
  std::puts("| --- | ---: | ---: | ---: | ---: |");
  struct Row {
    const char* name;
    std::int64_t limit;
    Micros period;
  };
  for (const auto& [name, limit, period] :
       {Row{"100/s", 100, 1s}, Row{"100,000/24h", 100'000, 24h},
        Row{"2,147,483,647/min", 2'147'483'647, 1min}, Row{"1,000,000/366d", 1'000'000, 24h * 366},
        Row{"1e12 per 7,777,777 us", 1'000'000'000'000, Micros{7'777'777}}}) {
    const auto made =
        Quota::Make({.algorithm = Algorithm::kSlidingWindow, .limit = limit, .period = period});
    if (!made) {
      std::printf("| %s | refused: %s |\n", name, made.error().message.c_str());
      continue;
    }
    std::printf("| %s | %s | %s | %s | %s |\n", name, Grouped(Slice(*made).count()).c_str(),
                Grouped(Slices(*made)).c_str(), Grouped(limit * Slices(*made)).c_str(),
                Grouped(Saturation(*made)).c_str());
  }
}

/// A sliding_log key that prints the result of each operation.
class LogTable {
 public:
  explicit LogTable(const Quota& quota) : key_(quota) {}
  void Step(std::int64_t at, std::int64_t cost, std::int64_t count = 1) {
    const Outcome outcome = key_.Step(cost, count, Tick(at));
    const std::string of = count == 1 ? "" : std::to_string(count) + " of ";
    TableRow(Tick(at), of + "cost " + std::to_string(cost), count, outcome, Text(key_.log()));
  }
  void Debit(std::int64_t at, std::int64_t units) {
    const Outcome outcome = key_.Debit(units, Tick(at));
    TableRow(Tick(at), "debit " + std::to_string(units), 0, outcome, Text(key_.log()));
  }
  void Refund(std::int64_t at, std::int64_t units, std::int64_t charged_at) {
    const Outcome outcome = key_.Refund(units, Tick(charged_at), Tick(at));
    TableRow(Tick(at), "refund " + std::to_string(units) + " of " + Grouped(charged_at), 0, outcome,
             Text(key_.log()));
  }

 private:
  LogKey key_;
};

void PrintSlidingLog() {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 3});
  TableHead("sliding_log, limit 3 per 1 s; state: at: units");
  LogTable key(quota);
  key.Step(0, 1);
  key.Step(200'000, 1, 3);
  key.Step(999'999, 1);
  key.Step(1'000'000, 1);
  key.Step(1'100'000, 2);
  key.Step(1'199'999, 2);
  key.Step(1'200'000, 2);
  key.Refund(1'300'000, 1, 1'200'000);
  key.Refund(1'300'000, 1, 900'000);
  key.Debit(1'400'000, 4);
  key.Step(1'400'000, 1);
  key.Step(1'400'000, 4);
  key.Step(2'400'000, 3);
  TableHead("sliding_log, the clock");
  LogTable clock(quota);
  clock.Step(9'500'000, 1);
  clock.Step(10'000'000, 1);
  clock.Step(9'200'000, 1);
  clock.Step(9'200'000, 1);
  clock.Step(8'500'000, 1);
  clock.Step(9'499'999, 1);
  clock.Step(9'500'000, 1);
}

void PrintConcurrency() {
  const Quota quota = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 3, .period = 10s});
  LeaseKey key(quota);
  const auto acquire = [&](std::int64_t at, int who, std::int64_t cost) {
    const Outcome o = key.Acquire(static_cast<std::uint64_t>(who), cost, Tick(at));
    TableRow(Tick(at),
             std::string("acquire ") + static_cast<char>('a' + who) + ", " + std::to_string(cost),
             1, o, Text(key.leases()));
  };
  const auto renew = [&](std::int64_t at, int who) {
    const Outcome o = key.Renew(static_cast<std::uint64_t>(who), Tick(at));
    TableRow(Tick(at), std::string("renew ") + static_cast<char>('a' + who), 1, o,
             Text(key.leases()));
  };
  const auto release = [&](std::int64_t at, int who) {
    const Outcome o = key.Release(static_cast<std::uint64_t>(who), Tick(at));
    TableRow(Tick(at), std::string("release ") + static_cast<char>('a' + who), 1, o,
             Text(key.leases()));
  };
  TableHead("concurrency, limit 3, leases of 10 s; state: id: expiry, units");
  acquire(0, 0, 1);
  acquire(2'000'000, 1, 2);
  acquire(3'000'000, 2, 1);
  acquire(4'000'000, 0, 1);
  acquire(5'000'000, 0, 2);
  acquire(5'000'000, 2, 4);
  release(6'000'000, 1);
  release(6'000'000, 1);
  acquire(7'000'000, 2, 2);
  renew(14'000'000, 0);
  acquire(14'000'000, 3, 1);
  acquire(17'000'000, 3, 3);
  TableHead("concurrency, the clock");
  key = LeaseKey(quota);
  acquire(60'000'000, 0, 3);
  acquire(55'000'000, 1, 1);
  renew(55'000'000, 0);
  acquire(40'000'000, 1, 1);
  acquire(50'000'000, 1, 1);
}

/// Prints the effect of another limit or period on a state, at the time of its last operation.
template <class Look>
void PrintChanges(Algorithm algorithm, std::span<const QuotaSpec> specs, Look look) {
  std::printf("\n### %s: a changed quota\n\n", std::string(Name(algorithm)).c_str());
  std::puts("| then | remaining | reset_after |\n| --- | ---: | ---: |");
  for (QuotaSpec spec : specs) {
    spec.algorithm = algorithm;
    const Outcome o = look(MakeQuota(spec));
    std::printf("| %s per %s s | %s | %s |%s\n", Grouped(spec.limit).c_str(),
                Number(Seconds(spec.period), 3).c_str(), Grouped(o.remaining).c_str(),
                Grouped(o.reset_after.count()).c_str(),
                o.effect == Effect::kRepaired ? " repaired" : "");
  }
}

void PrintAllChanges() {
  constexpr QuotaSpec kWindows[] = {{.limit = 10},
                                    {.limit = 20},
                                    {.limit = 5},
                                    {.limit = 10, .period = 10s},
                                    {.limit = 10, .period = 500ms},
                                    {.limit = 10, .period = 100ms}};
  const Time now = Tick(5'200'000);  // 8 of 10 units are used in the window from 5 s on.
  PrintChanges(Algorithm::kFixedWindow, kWindows, [&](const Quota& quota) {
    return fixed_window::Step({Tick(5'000'000), 8}, quota, 1, 0, now).outcome;
  });
  PrintChanges(Algorithm::kSlidingWindow, kWindows, [&](const Quota& quota) {
    return sliding_window::Step({Tick(5'000'000), 6, 5}, quota, 1, 0, now).outcome;
  });
  PrintChanges(Algorithm::kSlidingLog, kWindows, [&](const Quota& quota) {
    LogKey key(MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 10}));
    key.Step(3, 1, Tick(4'600'000));
    key.Step(5, 1, Tick(5'200'000));
    return sliding_log::Step(key.log(), quota, 1, 0, now).outcome;
  });
  constexpr QuotaSpec kLeases[] = {{.limit = 3, .period = 10s},
                                   {.limit = 5, .period = 10s},
                                   {.limit = 2, .period = 10s},
                                   {.limit = 3, .period = 5s},
                                   {.limit = 3, .period = 4s}};
  PrintChanges(Algorithm::kConcurrency, kLeases, [&](const Quota& quota) {
    LeaseKey key(MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 3, .period = 10s}));
    key.Acquire(0, 3, now);
    return concurrency::Acquire(key.leases(), quota, {0, 1}, 1, 0, now).outcome;
  });
}

void PrintSizes() {
  std::puts("\n### sizes in bytes\n");
  std::printf("token_bucket %zu, gcra %zu, sliding_window %zu, fixed_window %zu\n",
              sizeof(token_bucket::State), sizeof(gcra::State), sizeof(sliding_window::State),
              sizeof(fixed_window::State));
  std::printf("log %zu + %zu each, leases %zu + %zu each\n", sizeof(sliding_log::Log),
              sizeof(sliding_log::Entry), sizeof(concurrency::Leases), sizeof(concurrency::Lease));
}

}  // namespace

std::string Grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string Ticks(Time time) { return Grouped((time - kZero).count()); }

void TableHead(std::string_view title) {
  std::printf("\n### %.*s\n\n", static_cast<int>(title.size()), title.data());
  std::puts("| t | call | passes | remaining | retry_after | reset_after | state after |");
  std::puts("| ---: | --- | --- | ---: | ---: | ---: | --- |");
}

void TableRow(Time now, std::string_view call, std::int64_t asked, const Outcome& outcome,
              const std::string& state) {
  std::string passes = outcome.admitted > 0 ? "yes" : "no";
  if (asked > 1) passes = std::to_string(outcome.admitted);
  if (outcome.never) passes = "never";
  if (asked == 0) passes = outcome.admitted > 0 ? "done" : "too late";
  if (outcome.effect == Effect::kRepaired) passes += ", repaired";
  const bool retry = outcome.retry_after > Micros{0};
  std::printf("| %s | %.*s | %s | %s | %s | %s | %s |\n", Ticks(now).c_str(),
              static_cast<int>(call.size()), call.data(), passes.c_str(),
              Grouped(outcome.remaining).c_str(),
              retry ? Grouped(outcome.retry_after.count()).c_str() : "",
              Grouped(outcome.reset_after.count()).c_str(), state.c_str());
}

void PrintExamples() {
  PrintBucketExamples();
  PrintSlidingLog();
  PrintSlidingWindow();
  PrintErrorTable();
  PrintFixedWindow();
  PrintConcurrency();
  PrintAllChanges();
  PrintSizes();
}

}  // namespace tidegate::figures

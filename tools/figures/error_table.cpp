// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>

#include "core/sliding_window.hpp"
#include "example_table.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

using namespace std::chrono_literals;

/// Compares the estimate of sliding_window with the exact count of its own admissions.
struct Error {
  double mean = 0;  ///< Mean of |estimate - truth|, in percent of the limit.
  double worst = 0;
  double admitted = 0;  ///< Admitted units, in percent of what sliding_log admits of the same
                        ///< traffic.
  std::int64_t fullest = 0;
};

Error Measure(std::int64_t limit, double load) {
  constexpr double kSeconds = 200;
  constexpr double kWarm = 2;
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingWindow, .limit = limit});
  sliding_window::State state = sliding_window::Fresh(quota, kZero);
  std::deque<Time> inside;
  Error error;
  LogKey log(MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = limit}));
  double requests = 0;
  double admitted = 0;
  double exact = 0;
  for (const Time now : PoissonArrivals(load * static_cast<double>(limit), kSeconds)) {
    while (!inside.empty() && inside.front() + 1s <= now) inside.pop_front();
    const auto stepped = sliding_window::Step(state, quota, 1, 1, now);
    state = stepped.next;
    if (stepped.outcome.admitted == 1) inside.push_back(now);
    admitted += static_cast<double>(stepped.outcome.admitted);
    exact += static_cast<double>(log.Step(1, 1, now).admitted);
    error.fullest = std::max(error.fullest, static_cast<std::int64_t>(std::ssize(inside)));
    if (Seconds(now) < kWarm) continue;
    ++requests;
    const Time start = kZero + (now - kZero) / 1s * 1s;
    // A denial does not update the state, so its window may be that of the last admission.
    const bool current = state.start == start;
    const double fresh = 1 - Seconds(now - start);
    const double estimate =
        current ? static_cast<double>(state.previous) * fresh + static_cast<double>(state.current)
                : static_cast<double>(state.current) * fresh;
    const double off = std::abs(estimate - static_cast<double>(std::ssize(inside))) * 100 /
                       static_cast<double>(limit);
    error.mean += off;
    error.worst = std::max(error.worst, off);
  }
  error.mean /= requests;
  error.admitted = 100 * admitted / exact;
  return error;
}

}  // namespace

void PrintErrorTable() {
  std::puts("\n### sliding_window: the error under Poisson traffic, 200 s\n");
  std::puts(
      "| limit | load | mean error | worst error | admitted, of sliding_log's | "
      "fullest window |");
  std::puts("| ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const std::int64_t limit : {10, 100, 1000}) {
    for (const double load : {0.5, 0.9, 1.5, 3.0}) {
      const Error e = Measure(limit, load);
      std::printf("| %s | %.1f | %.2f %% | %.1f %% | %.1f %% | %s |\n", Grouped(limit).c_str(),
                  load, e.mean, e.worst, e.admitted, Grouped(e.fullest).c_str());
    }
  }
}

}  // namespace tidegate::figures

// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <string>

#include "figures.hpp"
#include "tidegate/rule_limiter.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kLimit = 5;
constexpr Micros kHold = 600ms;  // How long an admitted request keeps its lease.
constexpr double kEnd = 4;
constexpr Area kRow{.left = 140, .top = 92, .width = 552, .height = 44};

/// Returns a burst before and after the boundary at 1 s, twice the limit from 1.5 s to 2.9 s, half
/// a second without requests, and another burst.
std::vector<Time> Arrivals() {
  std::vector<Time> arrivals;
  const auto add = [&](double from, double step, int n) {
    for (int i = 0; i < n; ++i) arrivals.push_back(At(from + step * i));
  };
  add(0.79, 0.045, 5);
  add(1.02, 0.045, 5);
  add(1.5, 0.1, 15);
  add(3.4, 0.03, 8);
  return arrivals;
}

struct Answer {
  Time at;
  bool allowed;
};

/// Sends the requests through the whole library: a memory store with a manual clock.
std::vector<Answer> Ask(Algorithm algorithm, const std::vector<Time>& arrivals) {
  ManualClock clock(kZero);
  RuleLimiter limiter({.max_keys = 16, .max_list_bytes = 1u << 16, .clock = &clock});
  const Quota quota = MakeQuota({.algorithm = algorithm, .limit = kLimit});
  struct Held {
    Time until;
    std::string lease;
  };
  const auto charge_of = [&quota](std::string_view lease) {
    return RuleCharge{.rule = "rule", .identity = "key", .quota = &quota, .lease = lease};
  };
  std::deque<Held> held;
  std::vector<Answer> answers;
  for (const Time at : arrivals) {
    for (; !held.empty() && held.front().until <= at; held.pop_front()) {
      clock.Set(held.front().until);
      (void)limiter.Release(charge_of(held.front().lease)).value();
    }
    clock.Set(at);
    if (algorithm == Algorithm::kConcurrency) {
      const std::string lease = std::to_string(answers.size());
      const bool allowed = limiter.Decide(charge_of(lease))->allowed;
      if (allowed) held.push_back({at + kHold, lease});
      answers.push_back({at, allowed});
    } else {
      answers.push_back({at, limiter.Decide("rule", "key", quota)->allowed});
    }
  }
  return answers;
}

void DrawRow(Svg& svg, int row, Algorithm algorithm, const std::vector<Time>& arrivals) {
  Area area = kRow;
  area.top += row * kRow.height;
  Chart chart(svg, area, {0, kEnd}, {0, 1});
  svg.Text({area.left - 12, area.top + 28}, Name(algorithm),
           {.size = 12, .anchor = Anchor::kEnd, .weight = Weight::kBold});
  std::vector<Admitted> admitted;
  for (const Answer& answer : Ask(algorithm, arrivals)) {
    const double x = Seconds(answer.at);
    if (answer.allowed) {
      admitted.push_back({answer.at, 1});
      chart.Line({x, 0.15}, {x, 0.85}, {kBlue, 2.4});
    } else {
      svg.Cross(chart.At(x, 0.28), 2.6, {kRed, 1.5});
    }
  }
  const double right = area.left + area.width;
  svg.Text({right + 44, area.top + 28}, std::to_string(admitted.size()),
           {.size = 13, .anchor = Anchor::kMiddle});
  svg.Text({right + 112, area.top + 28}, std::to_string(FullestWindow(admitted, 1s)),
           {.size = 13, .anchor = Anchor::kMiddle});
  svg.Line({20, area.top + area.height}, {right + 150, area.top + area.height}, {kGrid, 1});
}

}  // namespace

Svg DrawSix() {
  Svg svg(862, 456, "Six algorithms, the same arrivals");
  const std::vector<Time> arrivals = Arrivals();
  Heading(svg, "The same " + std::to_string(arrivals.size()) + " requests, six answers",
          "limit 5 per 1 s, burst 5; concurrency: 5 leases, each released after 0.6 s");
  Chart all(svg, {kRow.left, kRow.top, kRow.width, 7 * kRow.height}, {0, kEnd}, {0, 1});
  all.XAxis("time in seconds; windows begin at whole seconds", 0.5);
  for (const double boundary : {1.0, 2.0, 3.0}) {
    all.Line({boundary, 0}, {boundary, 1}, {kFaint, 1, "2 3"});
  }
  const double right = kRow.left + kRow.width;
  const Font column{.size = 11, .colour = kFaint, .anchor = Anchor::kMiddle};
  svg.Text({right + 44, kRow.top + 2}, "passed", column);
  svg.Text({right + 112, kRow.top - 12}, "most in", column);
  svg.Text({right + 112, kRow.top + 2}, "any 1 s", column);
  svg.Text({kRow.left - 12, kRow.top + 28}, "arrivals", {.size = 12, .anchor = Anchor::kEnd});
  std::vector<Admitted> sent;
  Chart top(svg, kRow, {0, kEnd}, {0, 1});
  for (const Time at : arrivals) {
    sent.push_back({at, 1});
    top.Line({Seconds(at), 0.15}, {Seconds(at), 0.85}, {kFaint, 1.6});
  }
  svg.Text({right + 112, kRow.top + 28}, std::to_string(FullestWindow(sent, 1s)), column);
  svg.Line({20, kRow.top + kRow.height}, {right + 150, kRow.top + kRow.height}, {kGrid, 1});
  constexpr Algorithm kOrder[] = {Algorithm::kTokenBucket, Algorithm::kGcra,
                                  Algorithm::kSlidingLog,  Algorithm::kSlidingWindow,
                                  Algorithm::kFixedWindow, Algorithm::kConcurrency};
  int row = 1;
  for (const Algorithm algorithm : kOrder) DrawRow(svg, row++, algorithm, arrivals);
  const Key keys[] = {{Key::Mark::kLine, kBlue, "admitted", 110},
                      {Key::Mark::kCross, kRed, "denied", 110},
                      {Key::Mark::kLine, kFaint, "sent", 110}};
  Legend(svg, {kRow.left, 72}, keys);
  return svg;
}

}  // namespace tidegate::figures

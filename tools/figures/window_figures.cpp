// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "core/fixed_window.hpp"
#include "core/sliding_window.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

using namespace std::chrono_literals;

constexpr Area kPlot{.left = 70, .top = 96, .width = 760, .height = 290};

/// Returns the estimate at `now`, from a state whose window contains `now` or is the one before.
double Estimate(const sliding_window::State& state, Time now, Micros period) {
  const Time start = kZero + (now - kZero) / period * period;
  const double fresh =
      1 - static_cast<double>((now - start).count()) / static_cast<double>(period.count());
  if (state.start == start) {
    return static_cast<double>(state.previous) * fresh + static_cast<double>(state.current);
  }
  return state.start + period == start ? static_cast<double>(state.current) * fresh : 0;
}

}  // namespace

Svg DrawFixedWindow() {
  constexpr double kEnd = 3;
  Svg svg(862, 450, "Twice the limit around a boundary of fixed_window");
  Heading(svg, "fixed_window: two full limits around one boundary",
          "limit 10 per 1 s; 12 requests until 0.98 s, 12 from 1 s on, one each 20 ms");
  Chart chart(svg, kPlot, {0, kEnd}, {-2, 22});
  chart.YAxis("units", 5);
  chart.XAxis("time in seconds; windows begin at whole seconds", 0.5);
  for (const double boundary : {1.0, 2.0}) {
    chart.Line({boundary, -2}, {boundary, 22}, {kFaint, 1.2, "2 3"});
  }
  const Quota quota = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 10});
  fixed_window::State state = fixed_window::Fresh(quota, kZero);
  std::vector<Point> counter;
  std::vector<Admitted> admitted;
  for (int i = 0; i < 300; ++i) {
    const double t = i / 100.0;
    if ((i >= 76 && i < 124 && i % 2 == 0) || (i > 220 && i % 15 == 0)) {
      const auto stepped = fixed_window::Step(state, quota, 1, 1, At(t));
      state = stepped.next;
      if (stepped.outcome.admitted == 1) {
        admitted.push_back({At(t), 1});
        svg.Disc(chart.At(t, -1), 2.4, kBlue);
      } else {
        svg.Cross(chart.At(t, -1), 3, {kRed, 1.5});
      }
    }
    const auto look = fixed_window::Step(state, quota, 1, 0, At(t));
    counter.push_back({t, static_cast<double>(quota.limit() - look.outcome.remaining)});
  }
  chart.Level(10, "limit 10", {kGreen, 1.4, "6 4"});
  auto truth = InLastPeriod(admitted, 1s);
  truth.insert(truth.begin(), Point{0, 0});
  chart.Stairs(truth, kEnd, {kPurple, 2.2});
  chart.Stairs(counter, kEnd, {kBlue, 2.2});
  chart.Note({1.2, 20}, 6, -6,
             std::to_string(FullestWindow(admitted, 1s)) + " in one second, all within " +
                 Number(Seconds(admitted[19].at - admitted[0].at), 2) + " s",
             {.size = 11, .colour = kPurple});
  const Key keys[] = {{Key::Mark::kLine, kBlue, "the counter", 120},
                      {Key::Mark::kLine, kPurple, "truly admitted in the last second", 250},
                      {Key::Mark::kDisc, kBlue, "admitted", 100},
                      {Key::Mark::kCross, kRed, "denied", 90}};
  Legend(svg, {kPlot.left, 74}, keys);
  return svg;
}

Svg DrawSlidingWindow() {
  constexpr double kEnd = 2.5;
  constexpr std::int64_t kLimit = 20;
  Svg svg(862, 450, "The worst case of sliding_window");
  Heading(svg, "sliding_window at its worst: all at a window's last tick, then a flood",
          "limit 20 per 1 s; 20 at 0.999999 s, then a request each millisecond until 2 s");
  Chart chart(svg, kPlot, {0.5, kEnd}, {0, 44});
  chart.YAxis("units", 10);
  chart.XAxis("time in seconds; windows begin at whole seconds", 0.25);
  for (const double boundary : {1.0, 2.0}) {
    chart.Line({boundary, 0}, {boundary, 44}, {kFaint, 1.2, "2 3"});
  }
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingWindow, .limit = kLimit});
  sliding_window::State state = sliding_window::Fresh(quota, kZero);
  std::vector<Admitted> admitted;
  std::vector<Point> estimate{{0.5, 0}};
  const auto ask = [&](Time now, std::int64_t count) {
    const auto stepped = sliding_window::Step(state, quota, 1, count, now);
    if (stepped.outcome.admitted == 0) return;
    estimate.push_back({Seconds(now), Estimate(state, now, 1s)});
    state = stepped.next;
    estimate.push_back({Seconds(now), Estimate(state, now, 1s)});
    admitted.push_back({now, stepped.outcome.admitted});
  };
  ask(At(0.999999), 1000);
  estimate.push_back({1, static_cast<double>(kLimit)});
  for (int i = 1000; i < 2000; ++i) ask(At(i / 1000.0), 1);
  for (const double t : {2.0, kEnd}) estimate.push_back({t, Estimate(state, At(t), 1s)});

  const std::int64_t most = FullestWindow(admitted, 1s);
  chart.Level(kLimit, "", {kGreen, 1.4, "6 4"});
  chart.Note({0.5, kLimit}, 8, -6, "limit 20", {.size = 11, .colour = kGreen});
  chart.Level(static_cast<double>(2 * kLimit - 1), "", {kRed, 1.2, "6 4"});
  chart.Note({0.5, static_cast<double>(2 * kLimit - 1)}, 8, -6, "2 * limit - 1 = 39",
             {.size = 11, .colour = kRed});
  auto truth = InLastPeriod(admitted, 1s);
  truth.insert(truth.begin(), Point{0.5, 0});
  chart.Stairs(truth, kEnd, {kPurple, 2.2});
  chart.Path(estimate, {kBlue, 2});
  chart.Note({2, static_cast<double>(most)}, 8, 18, std::to_string(most) + " in one second",
             {.size = 11, .colour = kPurple});
  const Key keys[] = {{Key::Mark::kLine, kBlue, "the estimate", 120},
                      {Key::Mark::kLine, kPurple, "truly admitted in the last second", 250}};
  Legend(svg, {kPlot.left, 74}, keys);
  return svg;
}

Svg DrawSlidingError() {
  constexpr double kFrom = 2;
  constexpr double kEnd = 8;
  constexpr std::int64_t kLimit = 100;
  Svg svg(862, 450, "The usual error of sliding_window");
  Heading(svg, "sliding_window under ordinary traffic: the estimate follows the truth",
          "limit 100 per 1 s, Poisson arrivals of 90 a second");
  Chart chart(svg, kPlot, {kFrom, kEnd}, {60, 115});
  chart.YAxis("units", 10);
  chart.XAxis("time in seconds; windows begin at whole seconds", 0.5);
  for (double boundary = 3; boundary < kEnd; ++boundary) {
    chart.Line({boundary, 60}, {boundary, 115}, {kFaint, 1.2, "2 3"});
  }
  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingWindow, .limit = kLimit});
  sliding_window::State state = sliding_window::Fresh(quota, kZero);
  std::vector<Admitted> admitted;
  std::vector<Point> estimate;
  int denied = 0;
  for (const Time now : PoissonArrivals(90, kEnd)) {
    const auto stepped = sliding_window::Step(state, quota, 1, 1, now);
    state = stepped.next;
    if (stepped.outcome.admitted == 1) admitted.push_back({now, 1});
    if (Seconds(now) < kFrom) continue;
    estimate.push_back({Seconds(now), Estimate(state, now, 1s)});
    if (stepped.outcome.admitted == 0) {
      ++denied;
      svg.Cross(chart.At(Seconds(now), 62), 3, {kRed, 1.5});
    }
  }
  std::vector<Point> truth;
  for (const Point& p : InLastPeriod(admitted, 1s)) {
    if (p.x >= kFrom && p.x <= kEnd) truth.push_back(p);
  }
  chart.Level(static_cast<double>(kLimit), "limit 100", {kGreen, 1.4, "6 4"});
  chart.Stairs(truth, kEnd, {kPurple, 1.4});
  chart.Path(estimate, {kBlue, 1.8});
  const std::string count = "denied (" + std::to_string(denied) + ")";
  const Key keys[] = {{Key::Mark::kLine, kBlue, "the estimate", 120},
                      {Key::Mark::kLine, kPurple, "truly admitted in the last second", 250},
                      {Key::Mark::kCross, kRed, count, 110}};
  Legend(svg, {kPlot.left, 74}, keys);
  return svg;
}

}  // namespace tidegate::figures

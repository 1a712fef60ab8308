// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "core/token_bucket.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

constexpr double kEnd = 5;
constexpr double kStepAt = 1;  // Second at which the clock steps back.
constexpr double kLookEvery = 0.01;

/// Results for one key whose clock steps back by `back` seconds at 1 s. A request of cost 8, which
/// is denied unless the bucket is full, comes every 0.25 s, and peeks come in between.
struct Results {
  std::vector<Point> remaining;
  std::vector<double> denied;
  double repaired = -1;
  double caught_up = -1;  ///< Time at which the clock reaches the stored time again.
};

Results Live(double back) {
  const Quota quota = MakeQuota({.limit = 4, .burst = 8});
  token_bucket::State state = token_bucket::Fresh(quota, kZero);
  Results told;
  double next_request = 0.95;
  for (int i = 0; i * kLookEvery <= kEnd; ++i) {
    const double t = i * kLookEvery;
    const Time now = At(t < kStepAt ? t : t - back);
    if (t + 1e-9 >= next_request) {
      next_request += 0.25;
      const auto stepped = token_bucket::Step(state, quota, 8, 1, now);
      state = stepped.next;
      if (t < kStepAt) told.caught_up = Seconds(state.last_refill) + back;
      if (stepped.outcome.admitted == 0) told.denied.push_back(t);
      if (stepped.outcome.effect == Effect::kRepaired) told.repaired = t;
    }
    const auto look = token_bucket::Step(state, quota, 1, 0, now);
    told.remaining.push_back({t, static_cast<double>(look.outcome.remaining)});
  }
  return told;
}

void Panel(Svg& svg, const Area& area, double back, std::string_view title) {
  Chart chart(svg, area, {0, kEnd}, {0, 10});
  chart.YAxis("remaining", 4);
  chart.XAxis("true time in seconds", 0.5);
  svg.Text({area.left, area.top - 8}, title, {.size = 12, .weight = Weight::kBold});
  const Results told = Live(back);
  chart.Line({kStepAt, 0}, {kStepAt, 10}, {kPurple, 1.6, "6 4"});
  chart.Note({kStepAt, 10}, -6, 12, "the clock steps back",
             {.size = 11, .colour = kPurple, .anchor = Anchor::kEnd});
  if (told.repaired < 0) {
    svg.Box(chart.At(kStepAt, 10), chart.At(told.caught_up, 0).x - chart.At(kStepAt, 0).x,
            area.height, kPurple, 0.1);
    chart.Note({told.caught_up, 10}, 6, 12, "the clock has caught up: refilled from here",
               {.size = 11, .colour = kPurple});
  } else {
    svg.Disc(chart.At(told.repaired, 0), 5, kPurple);
    chart.Line({told.repaired, 0}, {told.repaired, 9.4}, {kPurple, 1});
    chart.Note({told.repaired, 9.4}, 6, 6, "repaired, though denied: refilled from here",
               {.size = 11, .colour = kPurple});
  }
  chart.Stairs(told.remaining, kEnd, {kBlue, 2.2});
  for (const double t : told.denied) svg.Cross(chart.At(t, 0), 3, {kRed, 1.6});
}

}  // namespace

Svg DrawClockSteps() {
  Svg svg(862, 520, "A clock that steps back: held and repaired");
  Heading(svg, "A clock that steps back: held by a little, repaired by a lot",
          "token_bucket, limit 4 per 1 s, burst 8: a full recovery takes 2 s");
  const Key keys[] = {{Key::Mark::kLine, kBlue, "remaining", 120},
                      {Key::Mark::kCross, kRed, "denied request of cost 8", 210},
                      {Key::Mark::kDisc, kPurple, "repair written", 140}};
  Legend(svg, {70, 74}, keys);
  Panel(svg, {70, 118, 760, 140}, 0.8, "by 0.8 s, less than one recovery: held");
  Panel(svg, {70, 332, 760, 140}, 3600, "by one hour: repaired");
  return svg;
}

}  // namespace tidegate::figures

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>

#include "core/gcra.hpp"
#include "core/quota_scale.hpp"
#include "core/token_bucket.hpp"
#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

constexpr double kEnd = 7;
constexpr Area kPlot{.left = 70, .top = 96, .width = 760, .height = 300};
constexpr std::int64_t kBurst = 8;
constexpr std::int64_t kRate = 4;

enum class Call { kStep, kDebit };

/// An event of the key. A step without a time comes at the retry time of the last denial.
struct Event {
  std::optional<double> at;
  std::int64_t cost;
  Call call = Call::kStep;
};

constexpr Event kEvents[] = {{0.50, 2},
                             {0.95, 3},
                             {1.40, 5},
                             {1.60, 5},
                             {std::nullopt, 5},
                             {3.10, 1},
                             {3.60, 6, Call::kDebit},
                             {3.90, 2},
                             {std::nullopt, 2}};

/// The parts of a drawing of one run: the curve, and the marks on it.
struct History {
  struct Mark {
    Point at;
    Event event;
  };
  struct Denial {
    Point at;
    std::int64_t cost;
    double retry;  ///< Time at which the request may be sent again.
  };
  std::vector<Point> path;
  std::vector<Mark> admitted;
  std::vector<Denial> denied;
};

/// Applies the events. `curve(path, state, from, to)` appends the state over time to the path, and
/// `high(state, t, cost)` returns the height at which a denied request of that cost is drawn.
template <auto kStep, auto kDebit, class State, class Curve, class High>
History Run(State state, const Quota& quota, Curve curve, High high) {
  History history;
  double at = 0;
  for (const Event& event : kEvents) {
    const double from = at;
    at = event.at ? *event.at : history.denied.back().retry;
    const auto stepped = event.call == Call::kDebit ? kDebit(state, quota, event.cost, At(at))
                                                    : kStep(state, quota, event.cost, 1, At(at));
    curve(history.path, state, from, at);
    if (stepped.outcome.admitted == 0) {
      const double retry = at + Seconds(stepped.outcome.retry_after);
      history.denied.push_back({{at, high(state, at, event.cost)}, event.cost, retry});
    }
    state = stepped.next;
    if (stepped.outcome.admitted > 0) {
      curve(history.path, state, at, at);
      history.admitted.push_back({history.path.back(), event});
    }
  }
  curve(history.path, state, at, kEnd);
  return history;
}

std::string Label(const Event& event) {
  return (event.call == Call::kDebit ? "debit " : "cost ") + std::to_string(event.cost);
}

void DrawDenials(Chart& chart, const History& history, Anchor anchor) {
  for (const auto& [at, cost, retry] : history.denied) {
    chart.Arrow(at, {retry, at.y}, {kRed, 1.4, "5 4"});
    chart.svg().Cross(chart.At(at.x, at.y), 5, {kRed, 2.2});
    chart.Note(at, anchor == Anchor::kStart ? -4 : 0, -11,
               "cost " + std::to_string(cost) + ": retry_after " + Number(retry - at.x, 2) + " s",
               {.size = 11, .colour = kRed, .anchor = anchor});
  }
}

/// Draws the curve, and marks for admissions and debits. `below` returns true if the label of a
/// mark goes below it.
template <class Below>
void DrawHistory(Chart& chart, const History& history, Below below) {
  chart.Path(history.path, {kBlue, 2.2});
  for (const auto& [at, event] : history.admitted) {
    chart.svg().Disc(chart.At(at.x, at.y), 4, event.call == Call::kDebit ? kPurple : kBlue);
    if (below(at)) {
      chart.Note(at, 7, 15, Label(event), {.size = 11});
    } else {
      chart.Note(at, -7, -5, Label(event), {.size = 11, .anchor = Anchor::kEnd});
    }
  }
}

void DrawLegend(Svg& svg, std::string_view curve, std::string_view denied) {
  const Key keys[] = {{Key::Mark::kLine, kBlue, curve, 90},
                      {Key::Mark::kDisc, kBlue, "admitted", 110},
                      {Key::Mark::kDisc, kPurple, "debit", 90},
                      {Key::Mark::kCross, kRed, denied, 260},
                      {Key::Mark::kDash, kRed, "until it fits", 120}};
  Legend(svg, {kPlot.left, 74}, keys);
}

/// Returns the level with its fraction. REQUIRES: `t` is not before the time of the state.
double Level(const token_bucket::State& state, const Quota& quota, double t) {
  const auto grains = static_cast<double>((At(t) - state.last_refill).count()) *
                          static_cast<double>(GrainsPerTick(quota)) +
                      static_cast<double>(state.rest);
  const double level =
      static_cast<double>(state.tokens) + grains / static_cast<double>(GrainsPerUnit(quota));
  return std::min(level, static_cast<double>(quota.capacity()));
}

/// Appends the points of the level between two events: the level bends once, when the bucket is
/// full.
void Refill(std::vector<Point>& path, const token_bucket::State& state, const Quota& quota,
            double from, double to) {
  const double full =
      Seconds(state.last_refill) + (static_cast<double>(quota.capacity() - state.tokens)) / kRate;
  path.push_back({from, Level(state, quota, from)});
  if (full > from && full < to) path.push_back({full, static_cast<double>(quota.capacity())});
  path.push_back({to, Level(state, quota, to)});
}

/// Returns the theoretical arrival time, but at least `t`.
double Tat(const gcra::State& state, double t) { return std::max(Seconds(state.tat), t); }

}  // namespace

Svg DrawTokenBucket() {
  Svg svg(862, 460, "The level of a token bucket over time");
  Heading(svg, "token_bucket: the level, and when a denied request fits",
          "limit 4 per 1 s, burst 8: a token every 0.25 s");
  Chart chart(svg, kPlot, {0, kEnd}, {-4, 9});
  chart.YAxis("tokens", 2);
  chart.XAxis("time in seconds", 0.5);
  chart.Level(kBurst, "capacity 8", {kFaint, 1.2, "6 4"});
  chart.Line({0, 0}, {kEnd, 0}, {kFaint, 1});
  const Quota quota = MakeQuota({.limit = kRate, .burst = kBurst});
  const History history = Run<token_bucket::Step, token_bucket::Debit>(
      token_bucket::Fresh(quota, kZero), quota,
      [&](std::vector<Point>& path, const token_bucket::State& state, double from, double to) {
        Refill(path, state, quota, from, to);
      },
      [](const token_bucket::State&, double, std::int64_t cost) {
        return static_cast<double>(cost);
      });
  DrawHistory(chart, history, [](Point) { return true; });
  DrawDenials(chart, history, Anchor::kStart);
  DrawLegend(svg, "level", "denied: the cost is above the level");
  return svg;
}

Svg DrawGcra() {
  Svg svg(862, 560, "The theoretical arrival time of gcra over time");
  Heading(svg, "gcra: the same history as a theoretical arrival time",
          "limit 4 per 1 s, burst 8: a unit costs 0.25 s, a full burst 2 s");
  Chart chart(svg, {kPlot.left, kPlot.top, kPlot.width, 400}, {0, kEnd}, {0, 9});
  chart.YAxis("theoretical arrival time in seconds", 1);
  chart.XAxis("now in seconds", 0.5);
  const Quota quota = MakeQuota({.algorithm = Algorithm::kGcra, .limit = kRate, .burst = kBurst});
  const double burst = Seconds(quota.recovery());
  chart.Line({0, 0}, {kEnd, kEnd}, {kFaint, 1.3});
  chart.Line({0, burst}, {kEnd, kEnd + burst}, {kGreen, 1.6, "6 4"});
  chart.Note({5.1, 5.1}, 10, 16, "now: all is paid for", {.size = 11, .colour = kFaint});
  chart.Note({5.2, 5.2 + burst}, -8, -8, "now + 2 s: the burst is used up",
             {.size = 11, .colour = kGreen, .anchor = Anchor::kEnd});
  const History history = Run<gcra::Step, gcra::Debit>(
      gcra::Fresh(quota, kZero), quota,
      [](std::vector<Point>& path, const gcra::State& state, double from, double to) {
        const double tat = Seconds(state.tat);
        path.push_back({from, Tat(state, from)});
        if (tat > from && tat < to) path.push_back({tat, tat});
        path.push_back({to, Tat(state, to)});
      },
      [](const gcra::State& state, double t, std::int64_t cost) {
        return Tat(state, t) + static_cast<double>(cost) / kRate;
      });
  // The label goes below the mark where the line of the burst would cross it.
  DrawHistory(chart, history, [&](Point at) {
    const double room = at.x + burst - at.y;
    return room > -1e-9 && room < 0.8;
  });
  DrawDenials(chart, history, Anchor::kMiddle);
  DrawLegend(svg, "tat", "denied: tat would pass the burst");
  return svg;
}

}  // namespace tidegate::figures

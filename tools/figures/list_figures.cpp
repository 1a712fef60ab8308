// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "figures.hpp"
#include "virtual_time.hpp"

namespace tidegate::figures {
namespace {

using namespace std::chrono_literals;

constexpr double kBar = 20;  // Height of a bar, in pixels.

void Bar(Chart& chart, double from, double to, double row, std::string_view colour) {
  const Point left = chart.At(from, row);
  chart.svg().Box({left.x, left.y - kBar / 2}, chart.At(to, row).x - left.x, kBar, colour, 0.85);
}

void Denied(Chart& chart, double at, double retry, double row, const std::string& what) {
  chart.Arrow({at, row}, {retry, row}, {kRed, 1.4, "5 4"});
  chart.svg().Cross(chart.At(at, row), 5, {kRed, 2.2});
  chart.Note({at, row}, -9, 4, what, {.size = 11, .colour = kRed, .anchor = Anchor::kEnd});
}

constexpr std::int64_t kPlaces = 3;
constexpr int kHolders = 5;

enum class LeaseCall { kAcquire, kRenew, kRelease };

struct LeaseEvent {
  double at;
  int who;
  LeaseCall call;
};

constexpr LeaseEvent kLeaseEvents[] = {
    {0.4, 0, LeaseCall::kAcquire}, {0.8, 1, LeaseCall::kAcquire}, {1.2, 2, LeaseCall::kAcquire},
    {1.6, 3, LeaseCall::kAcquire}, {2.0, 0, LeaseCall::kRenew},   {2.2, 1, LeaseCall::kRelease},
    {2.4, 3, LeaseCall::kAcquire}, {2.7, 4, LeaseCall::kAcquire}, {3.2, 4, LeaseCall::kAcquire},
    {3.5, 0, LeaseCall::kRenew},   {3.9, 3, LeaseCall::kRelease}, {4.4, 4, LeaseCall::kRelease},
    {4.8, 0, LeaseCall::kRelease}, {5.0, 2, LeaseCall::kRenew}};

LeaseKey NewLeaseKey() {
  return LeaseKey(
      MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = kPlaces, .period = 2s}));
}

Outcome Call(LeaseKey& key, const LeaseEvent& event) {
  const auto id = static_cast<std::uint64_t>(event.who);
  switch (event.call) {
    case LeaseCall::kAcquire: return key.Acquire(id, 1, At(event.at));
    case LeaseCall::kRenew: return key.Renew(id, At(event.at));
    case LeaseCall::kRelease: return key.Release(id, At(event.at));
  }
  return {};
}

/// Applies the events, and draws the lease of each holder in its own row.
class LeaseBars {
 public:
  explicit LeaseBars(Chart& chart) : chart_(chart), key_(NewLeaseKey()) {
    for (int who = 0; who < kHolders; ++who) {
      chart_.Note({0, Row(who)}, -14, 4, std::string(1, static_cast<char>('a' + who)),
                  {.size = 12, .anchor = Anchor::kEnd, .weight = Weight::kBold});
    }
  }

  void Apply(const LeaseEvent& event) {
    const Outcome outcome = Call(key_, event);
    if (outcome.admitted == 0) {
      Refused(event, outcome);
    } else if (event.call == LeaseCall::kRelease) {
      Released(event);
    } else {
      Holder& holder = holders_[static_cast<std::size_t>(event.who)];
      if (holder.from < 0) holder.from = event.at;
      holder.until = Expiry(event.who);
      if (event.call == LeaseCall::kRenew) renewals_.push_back(event);
    }
  }

  /// Draws the leases that were not released, and the marks on top of the bars.
  void Finish() {
    for (int who = 0; who < kHolders; ++who) {
      const Holder& holder = holders_[static_cast<std::size_t>(who)];
      if (holder.from < 0) continue;
      Bar(chart_, holder.from, holder.until, Row(who), kPurple);
      chart_.Note({holder.from, Row(who)}, 10, 4, "never released: ends by itself",
                  {.size = 11, .colour = kCard});
    }
    for (const LeaseEvent& renewal : renewals_) {
      chart_.svg().Disc(chart_.At(renewal.at, Row(renewal.who)), 5, kInk);
    }
  }

 private:
  struct Holder {
    double from = -1;
    double until = -1;  ///< Expiry that the last response promised.
  };

  static double Row(int who) { return kHolders - who; }

  [[nodiscard]] double Expiry(int who) const {
    for (const auto& lease : key_.leases().all()) {
      if (lease.id.low == static_cast<std::uint64_t>(who)) return Seconds(lease.expiry);
    }
    return -1;
  }

  void Refused(const LeaseEvent& event, const Outcome& outcome) {
    if (event.call == LeaseCall::kAcquire) {
      Denied(chart_, event.at, event.at + Seconds(outcome.retry_after), Row(event.who), "");
      return;
    }
    chart_.svg().Cross(chart_.At(event.at, Row(event.who)), 5, {kRed, 2.2});
    chart_.Note({event.at, Row(event.who)}, 10, 4, "renew: gone", {.size = 11, .colour = kRed});
  }

  void Released(const LeaseEvent& event) {
    Holder& holder = holders_[static_cast<std::size_t>(event.who)];
    Bar(chart_, holder.from, event.at, Row(event.who), kBlue);
    const Point corner = chart_.At(event.at, Row(event.who));
    chart_.svg().Frame({corner.x, corner.y - kBar / 2}, chart_.At(holder.until, 0).x - corner.x,
                       kBar, {kFaint, 1, "3 2"});
    holder = {};
  }

  Chart& chart_;
  LeaseKey key_;
  std::array<Holder, kHolders> holders_;
  std::vector<LeaseEvent> renewals_;
};

/// Returns the units held over time, from a second run of the events that is read every 20 ms.
std::vector<Point> HeldOverTime(double end) {
  constexpr double kEvery = 0.02;
  constexpr std::uint64_t kNobody = 99;
  LeaseKey key = NewLeaseKey();
  std::vector<Point> held;
  std::size_t next = 0;
  for (int i = 0; i * kEvery <= end; ++i) {
    const double t = i * kEvery;
    for (; next < std::size(kLeaseEvents) && kLeaseEvents[next].at <= t + 1e-9; ++next) {
      Call(key, kLeaseEvents[next]);
    }
    // Renewing a lease that does not exist changes nothing and returns the remaining units.
    held.push_back({t, static_cast<double>(kPlaces - key.Renew(kNobody, At(t)).remaining)});
  }
  return held;
}

}  // namespace

Svg DrawSlidingLog() {
  constexpr double kEnd = 3.5;
  constexpr std::int64_t kLimit = 4;
  struct Request {
    double at;
    std::int64_t cost;
  };
  constexpr std::array<Request, 11> kRequests = {{{0.10, 1},
                                                  {0.30, 1},
                                                  {0.55, 1},
                                                  {0.60, 1},
                                                  {0.80, 1},
                                                  {1.10, 1},
                                                  {1.20, 1},
                                                  {1.30, 1},
                                                  {1.70, 1},
                                                  {1.85, 2},
                                                  {2.10, 2}}};
  Svg svg(862, 500, "The sliding log: every unit as a bar of one period");
  Heading(svg, "sliding_log: every admitted unit is a bar of one period",
          "limit 4 per 1 s: no vertical line crosses more than 4 bars");
  Chart bars(svg, {70, 96, 760, 200}, {0, kEnd}, {0.4, 5.6});
  bars.XGrid(0.5);
  Chart count(svg, {70, 330, 760, 110}, {0, kEnd}, {0, 5});
  count.YAxis("units in (t - 1 s, t]", 1);
  count.XAxis("time in seconds", 0.5);
  svg.TextUp({32, 225}, "4 places", {.size = 12, .colour = kFaint, .anchor = Anchor::kMiddle});

  const Quota quota = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = kLimit});
  LogKey key(quota);
  std::array<double, kLimit> free_from{};
  std::vector<Admitted> admitted;
  for (const auto& [at, cost] : kRequests) {
    const Outcome outcome = key.Step(cost, 1, At(at));
    if (outcome.admitted == 0) {
      const std::string what = cost == 1 ? "" : "cost " + std::to_string(cost);
      Denied(bars, at, at + Seconds(outcome.retry_after), 5.1, what);
      continue;
    }
    admitted.push_back({At(at), cost});
    for (std::int64_t unit = 0; unit < cost; ++unit) {
      const auto place = std::ranges::find_if(free_from, [&](double f) { return f <= at + 1e-9; });
      // This cannot happen; if it did, a bar would be missing in the figure.
      if (place == free_from.end()) continue;
      *place = at + 1;
      const auto row = 4 - static_cast<double>(place - free_from.begin());
      Bar(bars, at, at + 1, row, kBlue);
      svg.Disc(bars.At(at, row), 4, kInk);
    }
  }
  auto stairs = InLastPeriod(admitted, 1s);
  stairs.insert(stairs.begin(), Point{0, 0});
  count.Level(static_cast<double>(kLimit), "limit 4", {kGreen, 1.4, "6 4"});
  count.Stairs(stairs, kEnd, {kBlue, 2.2});
  const Key keys[] = {{Key::Mark::kDisc, kInk, "admitted", 100},
                      {Key::Mark::kBox, kBlue, "counts until one period later", 235},
                      {Key::Mark::kCross, kRed, "denied", 90},
                      {Key::Mark::kDash, kRed, "until enough bars have ended", 220}};
  Legend(svg, {70, 74}, keys);
  return svg;
}

Svg DrawConcurrency() {
  constexpr double kEnd = 6.5;
  Svg svg(862, 540, "Leases as bars");
  Heading(svg, "concurrency: leases as bars",
          "limit 3, leases of 2 s: a and d behave, c crashes, e waits for its place");
  Chart bars(svg, {70, 96, 760, 230}, {0, kEnd}, {0.3, 5.7});
  bars.XGrid(0.5);
  LeaseBars lease_bars(bars);
  for (const LeaseEvent& event : kLeaseEvents) lease_bars.Apply(event);
  lease_bars.Finish();

  Chart count(svg, {70, 362, 760, 110}, {0, kEnd}, {0, 4});
  count.YAxis("units held", 1);
  count.XAxis("time in seconds", 0.5);
  count.Level(static_cast<double>(kPlaces), "limit 3", {kGreen, 1.4, "6 4"});
  count.Stairs(HeldOverTime(kEnd), kEnd, {kBlue, 2.2});
  const Key keys[] = {{Key::Mark::kBox, kBlue, "held", 80},
                      {Key::Mark::kFrame, kFaint, "promised, given back", 175},
                      {Key::Mark::kBox, kPurple, "crashed", 100},
                      {Key::Mark::kDisc, kInk, "renewed", 95},
                      {Key::Mark::kCross, kRed, "denied", 90},
                      {Key::Mark::kDash, kRed, "retry_after", 110}};
  Legend(svg, {70, 74}, keys);
  return svg;
}

}  // namespace tidegate::figures

// SPDX-License-Identifier: Apache-2.0
#include "net/reactor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace tidegate::net {
namespace {

using namespace std::chrono_literals;

Deadlines::Durations Durations() {
  Deadlines::Durations durations;
  durations.fill(60s);
  return durations;
}

/// A timer that arms itself again in each call, and records how late it is called.
struct Ticker final : Timer {
  explicit Ticker(Reactor& on) : Timer(on.timers()), reactor(on) { Arm(); }
  void Arm() {
    due = Clock::now() + 200us;
    ArmAt(due);
  }
  void OnTimer(Clock::time_point now) override {
    EXPECT_GE(now, due);
    late.push_back(now - due);
    if (late.size() == 50) return reactor.Stop();
    Arm();
  }
  Reactor& reactor;
  Clock::time_point due;
  std::vector<Clock::duration> late;
};

TEST(ReactorTest, CallsTimersLessThanOneMillisecondLate) {
  Reactor reactor(Durations());
  Ticker ticker(reactor);
  reactor.Run(std::nullopt);
  // The smallest delay of many, because other processes may delay any single call.
  EXPECT_LT(std::ranges::min(ticker.late), 400us);
}

TEST(ReactorTest, RunsPostedTasksInOrder) {
  Reactor reactor(Durations());
  std::vector<int> ran;
  reactor.Post([&] { ran.push_back(1); });
  reactor.Post([&] {
    ran.push_back(2);
    reactor.Stop();
  });
  reactor.Run(std::nullopt);
  EXPECT_EQ(ran, (std::vector{1, 2}));
}

}  // namespace
}  // namespace tidegate::net

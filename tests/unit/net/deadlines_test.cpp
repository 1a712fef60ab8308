// SPDX-License-Identifier: Apache-2.0
#include "net/timer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

namespace tidegate::net {
namespace {

using namespace std::chrono_literals;
using Kind = Deadlines::Kind;
using testing::ElementsAre;

struct Waiter final : Deadlines::Node {
  explicit Waiter(std::vector<std::string>& log, std::string is = {})
      : events(log), name(std::move(is)) {}
  void OnDeadline(Kind kind) override {
    events.push_back(name + std::to_string(static_cast<int>(kind)));
    if (then) then();
  }
  std::vector<std::string>& events;
  std::string name;
  std::function<void()> then;
};

class DeadlinesTest : public testing::Test {
 protected:
  /// Deadlines of 10 s, 20 s, 30 s, 40 s and 50 s, one for each kind.
  Deadlines deadlines_{{10s, 20s, 30s, 40s, 50s}};
  const Deadlines::Clock::time_point start_{1000s};
  std::vector<std::string> events_;
};

TEST_F(DeadlinesTest, FiresOnceAndNeverEarly) {
  Waiter a(events_, "a");
  EXPECT_EQ(deadlines_.Next(), std::nullopt);
  deadlines_.Arm(a, Kind::kHeader, start_);
  EXPECT_TRUE(Deadlines::IsArmed(a));
  EXPECT_EQ(deadlines_.Next(), start_ + 20s);
  deadlines_.Run(start_ + 20s - 1ns);
  EXPECT_THAT(events_, ElementsAre());
  deadlines_.Run(start_ + 20s);
  EXPECT_THAT(events_, ElementsAre("a1"));
  EXPECT_FALSE(Deadlines::IsArmed(a));
  deadlines_.Run(start_ + 100s);
  EXPECT_THAT(events_, ElementsAre("a1"));
  EXPECT_EQ(deadlines_.Next(), std::nullopt);
}

TEST_F(DeadlinesTest, ReportsEarliestDeadlineOfAllKinds) {
  Waiter a(events_, "a");
  Waiter b(events_, "b");
  deadlines_.Arm(a, Kind::kLinger, start_);
  deadlines_.Arm(b, Kind::kIdle, start_ + 5s);
  EXPECT_EQ(deadlines_.Next(), start_ + 15s);
  Deadlines::Disarm(b);
  EXPECT_EQ(deadlines_.Next(), start_ + 50s);
}

TEST_F(DeadlinesTest, ArmingAgainMovesDeadline) {
  Waiter a(events_, "a");
  deadlines_.Arm(a, Kind::kIdle, start_);
  deadlines_.Arm(a, Kind::kBody, start_ + 1s);
  deadlines_.Run(start_ + 11s);
  EXPECT_THAT(events_, ElementsAre());
  deadlines_.Run(start_ + 31s);
  EXPECT_THAT(events_, ElementsAre("a2"));
}

TEST_F(DeadlinesTest, ForgetsDestroyedWaiter) {
  {
    Waiter gone(events_, "gone");
    deadlines_.Arm(gone, Kind::kIdle, start_);
  }
  EXPECT_EQ(deadlines_.Next(), std::nullopt);
  deadlines_.Run(start_ + 100s);
  EXPECT_THAT(events_, ElementsAre());
}

TEST_F(DeadlinesTest, CallbackMayDestroyOtherWaitersOrItself) {
  Waiter a(events_, "a");
  auto b = std::make_optional<Waiter>(events_, "b");
  auto c = std::make_optional<Waiter>(events_, "c");
  Waiter d(events_, "d");
  a.then = [&] {
    c.reset();  // `c` has the deadline after the next one, which is also the last.
    Deadlines::Disarm(d);
  };
  b->then = [&] { b.reset(); };
  deadlines_.Arm(a, Kind::kIdle, start_);
  deadlines_.Arm(*b, Kind::kIdle, start_);
  deadlines_.Arm(*c, Kind::kIdle, start_);
  deadlines_.Arm(d, Kind::kIdle, start_);
  deadlines_.Run(start_ + 10s);
  EXPECT_THAT(events_, ElementsAre("a0", "b0"));
}

TEST_F(DeadlinesTest, DeadlineArmedInCallbackFiresInNextRound) {
  Deadlines eager{{0s, 0s, 0s, 0s, 0s}};
  Waiter a(events_, "a");
  a.then = [&] { eager.Arm(a, Kind::kIdle, start_); };
  eager.Arm(a, Kind::kIdle, start_);
  eager.Run(start_);
  EXPECT_THAT(events_, ElementsAre("a0"));
  eager.Run(start_);
  EXPECT_THAT(events_, ElementsAre("a0", "a0"));
}

TEST_F(DeadlinesTest, FiresInOrderOfArming) {
  Waiter a(events_, "a");
  Waiter b(events_, "b");
  Waiter c(events_, "c");
  deadlines_.Arm(b, Kind::kIdle, start_);
  deadlines_.Arm(a, Kind::kIdle, start_ + 1s);
  deadlines_.Arm(c, Kind::kIdle, start_ + 2s);
  deadlines_.Arm(b, Kind::kIdle, start_ + 3s);
  deadlines_.Run(start_ + 12s);
  EXPECT_THAT(events_, ElementsAre("a0", "c0"));
}

TEST_F(DeadlinesTest, CreatesKindsOfAnyDuration) {
  Waiter a(events_, "a");
  const Kind minute = deadlines_.KindFor(60s);
  deadlines_.Arm(a, minute, start_);
  EXPECT_EQ(deadlines_.KindFor(60s), minute);
  // The duration is the same, but kIdle is reserved for idle connections.
  EXPECT_NE(deadlines_.KindFor(10s), Kind::kIdle);
  EXPECT_EQ(deadlines_.Next(), start_ + 60s);
  deadlines_.Run(start_ + 59s);
  EXPECT_THAT(events_, ElementsAre());
  deadlines_.Run(start_ + 60s);
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(DeadlinesTest, ReusesUnusedKindForAnotherDuration) {
  for (int i = 1; i <= 1000; ++i) (void)deadlines_.KindFor(std::chrono::seconds{i});
  Waiter a(events_);
  deadlines_.Arm(a, deadlines_.KindFor(150ms), start_);
  EXPECT_EQ(*deadlines_.Next() - start_, 150ms);
  for (int i = 1; i <= 1000; ++i) (void)deadlines_.KindFor(std::chrono::seconds{i});
  EXPECT_EQ(*deadlines_.Next() - start_, 150ms);  // The kind of 150 ms is still in use.
}

TEST_F(DeadlinesTest, UsesNextLongerKindWhenAllAreInUse) {
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 1; i <= 100; ++i) {
    waiters.push_back(std::make_unique<Waiter>(events_));
    deadlines_.Arm(*waiters.back(), deadlines_.KindFor(std::chrono::seconds{i * 10}), start_);
  }
  Waiter a(events_);
  deadlines_.Arm(a, deadlines_.KindFor(41s), start_);
  deadlines_.Run(start_ + 49s);
  EXPECT_TRUE(Deadlines::IsArmed(a));  // A deadline never fires early.
  deadlines_.Run(start_ + 50s);
  EXPECT_FALSE(Deadlines::IsArmed(a));
}

}  // namespace
}  // namespace tidegate::net

// SPDX-License-Identifier: Apache-2.0
#include "limiter/wait_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tidegate/limiter.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

/// A queue on a limiter of one request per second and key, in virtual time.
class WaitQueueTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& key, Micros timeout, std::int64_t cost = 1) {
    queue_.Add({.key = key,
                .cost = cost,
                .deadline = now_ + timeout,
                .done =
                    [this, name](const Decision& decision) {
                      answers_.push_back(name + (decision.allowed ? "+" : "-"));
                    }},
               now_, found_);
    Deliver();
  }
  void Advance(Micros by) {
    now_ += by;
    clock_.Advance(by);
    queue_.Run(now_, found_);
    Deliver();
  }
  void Deliver() {
    for (const auto& [done, decision] : found_) done(decision);
    found_.clear();
  }
  std::vector<std::string> Answers() { return std::exchange(answers_, {}); }

  using List = std::vector<std::string>;

  ManualClock clock_;
  Limiter limiter_{Quota::PerSecond(1).Burst(2), {.clock = &clock_}};
  WaitQueue queue_{
      [this](std::string_view key, std::int64_t cost) { return limiter_.Check(key, cost); }};
  WaitQueue::TimePoint now_{};
  WaitQueue::Answers found_;
  std::vector<std::string> answers_;
};

TEST_F(WaitQueueTest, AllowsAtOnceWhenUnitsAreLeft) {
  Add("a", "k", 0s);
  Add("b", "k", 0s);
  EXPECT_EQ(Answers(), (List{"a+", "b+"}));
  EXPECT_EQ(queue_.next(), std::nullopt);
}

TEST_F(WaitQueueTest, DeniesAtOnceWhenDeadlineIsTooEarly) {
  Add("a", "k", 0s, 2);
  Add("b", "k", 999ms);
  Add("c", "k", 1h, 3);
  EXPECT_EQ(Answers(), (List{"a+", "b-", "c-"}));
  EXPECT_EQ(queue_.next(), std::nullopt);
}

TEST_F(WaitQueueTest, ServesEachKeyInOrderOfArrival) {
  Add("first", "k", 0s, 2);
  Add("large", "k", 1h, 2);
  Add("small", "k", 1h);
  Add("other", "l", 1h);
  EXPECT_EQ(Answers(), (List{"first+", "other+"}));
  EXPECT_EQ(queue_.next(), now_ + 2s);
  Advance(1s);
  EXPECT_EQ(Answers(), List{}) << "the smaller request overtook the larger one";
  Advance(1s);
  EXPECT_EQ(Answers(), List{"large+"});
  EXPECT_EQ(queue_.next(), now_ + 1s);
  Advance(1s);
  EXPECT_EQ(Answers(), List{"small+"});
}

TEST_F(WaitQueueTest, DeniesWaitingRequestAtItsDeadline) {
  Add("first", "k", 0s, 2);
  Add("large", "k", 1h, 2);
  Add("hasty", "k", 500ms);
  Add("patient", "k", 1h);
  EXPECT_EQ(Answers(), List{"first+"});
  EXPECT_EQ(queue_.next(), now_ + 500ms);
  Advance(500ms);
  EXPECT_EQ(Answers(), List{"hasty-"});
  Advance(1500ms);
  EXPECT_EQ(Answers(), List{"large+"});
  Advance(1s);
  EXPECT_EQ(Answers(), List{"patient+"});
  EXPECT_EQ(queue_.next(), std::nullopt);
}

TEST_F(WaitQueueTest, DeniesWaitingRequestWhoseUnitsWereTaken) {
  Add("first", "k", 0s, 2);
  Add("second", "k", 1500ms);
  now_ += 1s;
  clock_.Advance(1s);
  EXPECT_TRUE(limiter_.Check("k").allowed) << "Check() was queued";
  Advance(0s);
  EXPECT_EQ(Answers(), (List{"first+", "second-"}))
      << "the request was not denied although the next unit comes after its deadline";
}

TEST_F(WaitQueueTest, ClearDeniesAllWaitingRequests) {
  Add("first", "k", 0s, 2);
  Add("a", "k", 1h);
  Add("b", "k", 1h);
  queue_.Clear(found_);
  Deliver();
  EXPECT_EQ(Answers(), (List{"first+", "a-", "b-"}));
  EXPECT_EQ(queue_.next(), std::nullopt);
}

}  // namespace
}  // namespace tidegate

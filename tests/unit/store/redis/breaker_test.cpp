// SPDX-License-Identifier: Apache-2.0
#include "store/redis/breaker.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using namespace std::chrono_literals;
using State = Breaker::State;

class BreakerTest : public testing::Test {
 protected:
  Breaker::TimePoint now_{1000s};
  Breaker breaker_{42};
};

TEST_F(BreakerTest, StaysClosedAfterTwoFailures) {
  breaker_.OnFailure(now_);
  breaker_.OnFailure(now_);
  EXPECT_TRUE(breaker_.Allows(now_));
  breaker_.OnSuccess();
  breaker_.OnFailure(now_);
  breaker_.OnFailure(now_);
  EXPECT_EQ(breaker_.state(), State::kClosed) << "a success did not reset the count of failures";
  breaker_.OnFailure(now_);
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_FALSE(breaker_.Allows(now_));
}

TEST_F(BreakerTest, ClosesOrOpensAgainAfterProbeWhenHalfOpen) {
  for (int i = 0; i < 3; ++i) breaker_.OnFailure(now_);
  EXPECT_FALSE(breaker_.Allows(breaker_.retry_at() - 1us));
  now_ = breaker_.retry_at();
  EXPECT_TRUE(breaker_.Allows(now_));
  EXPECT_TRUE(breaker_.Allows(now_))
      << "a request that arrives before the probe is sent cannot join it";
  breaker_.OnSent();
  EXPECT_FALSE(breaker_.Allows(now_)) << "a second probe was allowed";
  breaker_.OnFailure(now_);
  EXPECT_EQ(breaker_.state(), State::kOpen);
  EXPECT_FALSE(breaker_.Allows(now_));
  now_ = breaker_.retry_at();
  EXPECT_TRUE(breaker_.Allows(now_));
  breaker_.OnSent();
  breaker_.OnSuccess();
  EXPECT_EQ(breaker_.state(), State::kClosed);
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(BreakerTest, StaysOpenWithoutConnection) {
  breaker_.OnLinkDown(now_);
  EXPECT_FALSE(breaker_.Allows(now_ + 1h));
  breaker_.OnLinkUp();
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(BreakerTest, ProbesWithinHalfASecond) {
  for (int i = 0; i < 100; ++i) breaker_.OnFailure(now_);
  EXPECT_LE(breaker_.retry_at() - now_, 505ms);
}

}  // namespace
}  // namespace tidegate::redis

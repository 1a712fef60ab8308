// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using std::chrono::seconds;

class EjectionTest : public ::testing::Test {
 protected:
  explicit EjectionTest(int count = 4) {
    for (int i = 0; i < count; ++i) members_.push_back(std::make_shared<Member>());
  }
  bool Bad(int member) {
    return NoteAttempt(*members_[static_cast<std::size_t>(member)], AttemptResult::kBad, ejection_,
                       members_, now_);
  }
  bool Good(int member) {
    return NoteAttempt(*members_[static_cast<std::size_t>(member)], AttemptResult::kGood, ejection_,
                       members_, now_);
  }
  bool Ejected(int member) { return members_[static_cast<std::size_t>(member)]->Ejected(now_); }

  UpstreamSpec::Ejection ejection_{.failures = 3, .time = seconds{10}, .percent = 50};
  Members members_;
  Member::Clock::time_point now_{std::chrono::hours{1}};
};

TEST_F(EjectionTest, EjectsAfterConsecutiveFailures) {
  EXPECT_FALSE(Bad(0));
  EXPECT_FALSE(Bad(0));
  EXPECT_FALSE(Good(0));  // The success resets the count: only consecutive failures eject.
  EXPECT_FALSE(Bad(0));
  EXPECT_FALSE(Bad(0));
  EXPECT_FALSE(Ejected(0));
  EXPECT_TRUE(Bad(0));
  EXPECT_TRUE(Ejected(0));
  now_ += seconds{9};
  EXPECT_TRUE(Ejected(0));
  now_ += seconds{1};
  EXPECT_FALSE(Ejected(0));
}

TEST_F(EjectionTest, EjectsForLongerAfterFailureOnReturn) {
  for (int i = 0; i < 3; ++i) (void)Bad(0);
  now_ += seconds{10};
  EXPECT_TRUE(Bad(0));
  now_ += seconds{19};
  EXPECT_TRUE(Ejected(0));
  now_ += seconds{1};
  EXPECT_FALSE(Ejected(0));
  (void)Good(0);  // The success resets the ejection time.
  EXPECT_FALSE(Bad(0));
  EXPECT_FALSE(Bad(0));
  EXPECT_TRUE(Bad(0));
  now_ += seconds{10};
  EXPECT_FALSE(Ejected(0));
}

TEST_F(EjectionTest, NeverEjectsMoreThanTheConfiguredPercentage) {
  for (int member = 0; member < 4; ++member) {
    for (int i = 0; i < 5; ++i) (void)Bad(member);
  }
  EXPECT_TRUE(Ejected(0));
  EXPECT_TRUE(Ejected(1));
  EXPECT_FALSE(Ejected(2));
  EXPECT_FALSE(Ejected(3));
}

TEST_F(EjectionTest, NeverEjectsTheLastMember) {
  ejection_.percent = 100;
  for (int member = 0; member < 4; ++member) {
    for (int i = 0; i < 5; ++i) (void)Bad(member);
  }
  EXPECT_TRUE(Ejected(2));
  EXPECT_FALSE(Ejected(3));
}

TEST_F(EjectionTest, NeverEjectsTheLastHealthyMember) {
  for (int member = 0; member < 3; ++member)
    members_[static_cast<std::size_t>(member)]->healthy = false;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Bad(3));
}

TEST_F(EjectionTest, NeverEjectsWhenEjectionIsOff) {
  ejection_.failures = 0;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Bad(0));
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

constexpr Replay kUnsent{.nothing_sent = true, .idempotent = false, .whole = true};
constexpr Replay kGet{.nothing_sent = false, .idempotent = true, .whole = true};
constexpr Replay kPost{.nothing_sent = false, .idempotent = false, .whole = true};
constexpr Replay kGone{.nothing_sent = false, .idempotent = true, .whole = false};

TEST(RetryTest, AllowsRetryDependingOnFailureMethodAndBody) {
  using F = AttemptFailure;
  const UpstreamSpec::Retries usual;
  struct Case {
    F failure;
    bool unsent, get, post, gone;
  };
  constexpr Case kCases[] = {
      {F::kConnect, true, true, false, false}, {F::kConnectTimeout, true, true, false, false},
      {F::kReset, true, true, false, false},   {F::kTimeout, true, false, false, false},
      {F::kStatus, true, false, false, false}, {F::kBadAnswer, true, false, false, false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(static_cast<int>(c.failure));
    EXPECT_EQ(MayRetry(usual, c.failure, 503, 1, kUnsent), c.unsent);
    EXPECT_EQ(MayRetry(usual, c.failure, 503, 1, kGet), c.get);
    EXPECT_EQ(MayRetry(usual, c.failure, 503, 1, kPost), c.post);
    EXPECT_EQ(MayRetry(usual, c.failure, 503, 1, kGone), c.gone);
  }
}

TEST(RetryTest, AllowsConfiguredNumberOfAttempts) {
  UpstreamSpec::Retries retries{.attempts = 2};
  EXPECT_TRUE(MayRetry(retries, AttemptFailure::kReset, 0, 2, kGet));
  EXPECT_FALSE(MayRetry(retries, AttemptFailure::kReset, 0, 3, kGet));
  retries.attempts = 0;
  EXPECT_FALSE(MayRetry(retries, AttemptFailure::kConnect, 0, 1, kUnsent));
}

TEST(RetryTest, AllowsConfiguredTimeoutsAndStatuses) {
  const UpstreamSpec::Retries retries{.timeout = true, .statuses = {503}};
  EXPECT_TRUE(MayRetry(retries, AttemptFailure::kTimeout, 0, 1, kGet));
  EXPECT_FALSE(MayRetry(retries, AttemptFailure::kTimeout, 0, 1, kPost));
  EXPECT_TRUE(MayRetry(retries, AttemptFailure::kStatus, 503, 1, kGet));
  EXPECT_FALSE(MayRetry(retries, AttemptFailure::kStatus, 502, 1, kGet));
}

TEST(RetryTest, RecognizesIdempotentMethods) {
  for (const auto* method : {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}) {
    EXPECT_TRUE(IsIdempotent(method)) << method;
  }
  for (const auto* method : {"POST", "PATCH", "get", "LOCK"}) {
    EXPECT_FALSE(IsIdempotent(method)) << method;
  }
}

TEST(RetryBudgetTest, AllowsHundredRetriesThenPercentageOfRequests) {
  RetryBudget budget(20);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
  int retries = 0;
  for (int i = 0; i < 1000; ++i) {
    budget.OnRequest();
    if (budget.Take()) ++retries;
  }
  EXPECT_EQ(retries, 200);
  for (int i = 0; i < 1000; ++i) budget.OnRequest();
  retries = 0;
  while (budget.Take()) ++retries;
  EXPECT_EQ(retries, 100);  // At most 100 retries are saved, even after many requests.
}

}  // namespace
}  // namespace tidegate

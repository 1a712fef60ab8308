// SPDX-License-Identifier: Apache-2.0
// Tests the checks of invariants.hpp: for each promise, records that just satisfy it, and one
// admission too many.
#include "redis/invariants.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tidegate::redis_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
/// Returns a record of a request that was decided at an unknown moment between the two times.
Record At(std::int64_t sent_us, std::int64_t received_us, std::uint16_t status = 200) {
  Record record;
  record.sent_us = sent_us;
  record.took_us = static_cast<std::uint32_t>(received_us - sent_us);
  record.status = status;
  record.decided_by = DecidedBy::kStore;
  return record;
}
void Add(Records& records, int count, std::int64_t sent_us, std::int64_t received_us) {
  for (int i = 0; i < count; ++i) records.push_back(At(sent_us, received_us));
}

TEST(InvariantsTest, BucketCheckAllowsBurstPlusRefill) {
  const Promise promise{100, kSecond, 20};
  Records records;
  Add(records, 20, 1000, 1010);
  for (int i = 1; i <= 50; ++i) Add(records, 1, 1000 + i * 10'000, 1010 + i * 10'000);
  EXPECT_TRUE(BucketHolds(records, promise));
  records.push_back(At(400'000, 400'010));  // One admission too many, in the middle.
  EXPECT_FALSE(BucketHolds(records, promise));
  records.back().status = 429;
  EXPECT_TRUE(BucketHolds(records, promise));
  records.back().status = 503;
  EXPECT_TRUE(BucketHolds(records, promise));
}

TEST(InvariantsTest, BucketCheckFindsExcessInsideALongRun) {
  const Promise promise{100, kSecond, 20};
  Records records;
  Add(records, 20, 10 * kSecond, 10 * kSecond + 10);
  EXPECT_TRUE(BucketHolds(records, promise));
  Add(records, 1, 0, 10);  // Ten seconds earlier, so the bucket is full again.
  Add(records, 1, 20 * kSecond, 20 * kSecond + 10);
  EXPECT_TRUE(BucketHolds(records, promise));
  Add(records, 1, 10 * kSecond + 5000, 10 * kSecond + 5010);  // Only half a token was refilled.
  EXPECT_FALSE(BucketHolds(records, promise));
}

TEST(InvariantsTest, BucketCheckAllowsForReplyDelay) {
  const Promise promise{100, kSecond, 20};
  Records records;
  Add(records, 20, 0, 10);
  Add(records, 1, 0, 10'000);  // May have been decided after one token was refilled.
  EXPECT_TRUE(BucketHolds(records, promise));
  Add(records, 1, 0, 10'000);
  EXPECT_FALSE(BucketHolds(records, promise));
  records.pop_back();
  records.back() = At(0, 9'990);  // 10 us too early for a token, whenever the others were decided.
  EXPECT_FALSE(BucketHolds(records, promise));
}

TEST(InvariantsTest, BucketCheckCountsCosts) {
  const Promise promise{100, kSecond, 20};
  Records records;
  Add(records, 4, 0, 10);
  for (Record& record : records) record.cost = 5;
  EXPECT_TRUE(BucketHolds(records, promise));
  records[0].cost = 6;
  EXPECT_FALSE(BucketHolds(records, promise));
}

TEST(InvariantsTest, LossAllowsOneExtraBurst) {
  const Promise promise{100, kSecond, 20};
  const std::vector<Loss> loss = {{1000, 2000}};
  Records records;
  Add(records, 20, 0, 10);
  Add(records, 20, 3000, 3010);
  EXPECT_FALSE(BucketHolds(records, promise));
  EXPECT_TRUE(BucketHolds(records, promise, loss));
  Records before = records;
  Add(before, 1, 500, 510);  // One admission too many before the loss.
  EXPECT_FALSE(BucketHolds(before, promise, loss));
  Records during = records;
  Add(during, 1, 1500, 1510);  // Certainly in neither stretch, but one too many in total.
  EXPECT_FALSE(BucketHolds(during, promise, loss));
  EXPECT_TRUE(BucketHolds(during, promise, std::vector<Loss>{{1000, 1200}, {1800, 2000}}));
}

TEST(InvariantsTest, LogCheckCoversEveryWindow) {
  const Promise promise{10, kSecond, 0};
  Records records;
  Add(records, 10, 900'000, 900'010);
  Add(records, 10, 1'900'000, 1'900'010);
  EXPECT_TRUE(LogHolds(records, promise));
  Add(records, 1, 1'899'980, 1'900'000);  // Just within a period after the first ten.
  EXPECT_FALSE(LogHolds(records, promise));
  // May be outside that period, but then it is one too many in the next one.
  records.back() = At(1'899'980, 1'900'200);
  EXPECT_FALSE(LogHolds(records, promise));
  records.back() = At(1'899'980, 2'900'200);
  EXPECT_TRUE(LogHolds(records, promise));
  const std::vector<Loss> loss = {{950'000, 960'000}};
  records.assign(10, At(900'000, 900'010));
  records.push_back(At(970'000, 970'010));
  EXPECT_FALSE(LogHolds(records, promise));
  EXPECT_TRUE(LogHolds(records, promise, loss));
}

TEST(InvariantsTest, FixedWindowCheckUsesAlignedWindows) {
  const Promise promise{10, kSecond, 0};
  constexpr std::int64_t kEpoch = 300'000;  // So windows begin at 700,000, 1,700,000 and so on.
  Records records;
  Add(records, 10, 699'900, 699'910);
  Add(records, 10, 700'100, 700'110);
  EXPECT_TRUE(FixedWindowHolds(records, promise, kEpoch));
  EXPECT_FALSE(FixedWindowHolds(records, promise, 0));
  Add(records, 1, 699'900, 700'200);  // In one of two windows, and both are full.
  EXPECT_FALSE(FixedWindowHolds(records, promise, kEpoch));
  records.back() = At(1'699'900, 1'700'200);  // May be in the third window.
  EXPECT_TRUE(FixedWindowHolds(records, promise, kEpoch));
  records.back() = At(1'699'900, 1'699'910);
  EXPECT_FALSE(FixedWindowHolds(records, promise, kEpoch));
  EXPECT_TRUE(FixedWindowHolds(records, promise, kEpoch, std::vector<Loss>{{800'000, 900'000}}));
}

TEST(InvariantsTest, FixedWindowCheckAcceptsNegativeEpoch) {
  const Promise promise{1, kSecond, 0};
  Records records;
  Add(records, 1, 100, 110);
  Add(records, 1, 300, 310);
  EXPECT_TRUE(FixedWindowHolds(records, promise, -200));
  EXPECT_FALSE(FixedWindowHolds(records, promise, -50));
}

TEST(InvariantsTest, SlidingWindowCheckAllowsDocumentedError) {
  const Promise promise{10, kSecond, 0};
  Records records;
  Add(records, 10, 999'900, 999'910);
  Add(records, 9, 1'900'000, 1'900'010);
  EXPECT_TRUE(SlidingWindowHolds(records, promise, 0));
  Add(records, 1, 1'999'800, 1'999'810);  // 20 in less than a period, but 10 in each window.
  EXPECT_FALSE(SlidingWindowHolds(records, promise, 0));
  records.back() = At(1'999'990, 2'000'010);
  EXPECT_TRUE(SlidingWindowHolds(records, promise, 0));
  Add(records, 2, 1'000'100, 1'000'110);  // 21 within two windows.
  EXPECT_FALSE(SlidingWindowHolds(records, promise, 0));
}

Record Lease(Op op, std::uint32_t connection, std::int64_t sent_us, std::int64_t received_us) {
  Record record = At(sent_us, received_us);
  record.op = op;
  record.connection = connection;
  return record;
}

TEST(InvariantsTest, LeaseCheckCountsFromGrantToRelease) {
  const Promise promise{2, 30 * kSecond, 0};
  Records records = {
      Lease(Op::kAcquire, 1, 0, 10),    Lease(Op::kAcquire, 2, 0, 10),
      Lease(Op::kRelease, 1, 100, 110), Lease(Op::kAcquire, 3, 90, 105),
      Lease(Op::kRelease, 2, 200, 210), Lease(Op::kRelease, 3, 200, 210),
  };
  EXPECT_TRUE(LeasesHold(records, promise));
  EXPECT_EQ(MostLeases(records, promise), 2);
  records[3] = Lease(Op::kAcquire, 3, 90, 99);  // Granted before the first release was sent.
  EXPECT_FALSE(LeasesHold(records, promise));
  EXPECT_EQ(MostLeases(records, promise), 3);
  EXPECT_TRUE(LeasesHold(records, promise, std::vector<Loss>{{50, 60}}));
  records[3].status = 429;
  EXPECT_TRUE(LeasesHold(records, promise));
}

TEST(InvariantsTest, LeaseCheckEndsUnreleasedLeaseAfterItsPeriod) {
  const Promise promise{1, kSecond, 0};
  Records records = {Lease(Op::kAcquire, 1, 0, 10), Lease(Op::kAcquire, 2, 900'000, kSecond)};
  EXPECT_TRUE(LeasesHold(records, promise));
  records[1] = Lease(Op::kAcquire, 2, 900'000, kSecond - 1);
  EXPECT_FALSE(LeasesHold(records, promise));
}

TEST(InvariantsTest, ChecksEachKeySeparately) {
  const Promise promise{1, kSecond, 2};
  const Check check = [&](std::span<const Record> key) { return BucketHolds(key, promise); };
  Records records;
  for (std::uint32_t i = 0; i < 100; ++i) {
    records.push_back(At(0, 10));
    records.back().key = i % 50;
  }
  EXPECT_TRUE(EachKey(records, check));
  records[99].key = 7;
  EXPECT_FALSE(EachKey(records, check));
}

/// Decides with a minimal token bucket, at a random moment within the interval of each record.
TEST(InvariantsTest, BucketCheckAcceptsRealBucketWithAnyDelay) {
  const Promise promise{1000, kSecond, 50};
  std::mt19937 random(7);
  Records records;
  double tokens = promise.burst;
  std::int64_t last = 0;
  for (std::int64_t now = 0; now < 20 * kSecond;
       now += 1 + static_cast<std::int64_t>(random() % 400)) {
    tokens = std::min(promise.burst, tokens + static_cast<double>(now - last) / 1000);
    last = now;
    const bool passes = tokens >= 1;
    if (passes) tokens -= 1;
    records.push_back(At(now - static_cast<std::int64_t>(random() % 5000),
                         now + static_cast<std::int64_t>(random() % 20'000), passes ? 200 : 429));
  }
  EXPECT_TRUE(BucketHolds(records, promise));
  EXPECT_FALSE(BucketHolds(records, Promise{1000, kSecond, 5}));
}

TEST(InvariantsTest, ComputesLatenciesByNearestRank) {
  Records records;
  for (std::int64_t i = 1; i <= 1000; ++i) records.push_back(At(0, i * 1000));
  const Latencies latencies = LatenciesOf(records);
  EXPECT_EQ(latencies.p50_ms, 500);
  EXPECT_EQ(latencies.p99_ms, 990);
  EXPECT_EQ(latencies.p999_ms, 999);
  EXPECT_EQ(latencies.most_ms, 1000);
  EXPECT_EQ(LatenciesOf({}).count, 0U);
}

TEST(InvariantsTest, ChecksAMillionAdmissionsQuickly) {
  const Promise promise{100'000, kSecond, 1000};
  Records records;
  for (std::int64_t i = 0; i < 1'000'000; ++i) Add(records, 1, i * 10, i * 10 + 3000);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(BucketHolds(records, promise));
  EXPECT_TRUE(LogHolds(records, promise));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#include "core/sliding_log.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "property/quotas.hpp"
#include "unit/core/table.hpp"

namespace tidegate {
namespace {

using property::LogSubject;
using sliding_log::Entry;

std::vector<Entry> Entries(const LogSubject& subject) {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < subject.log().size(); ++i) entries.push_back(subject.log()[i]);
  return entries;
}

TEST(SlidingLogTest, CountsUnitForExactlyOnePeriod) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  Play(log, {
                {Look(0), 0, 3, 0, 0},
                {Step(0, 1), 1, 2, 0, 100},
                {Step(10, 1), 1, 1, 0, 100},
                {Step(20, 1, 2), 1, 0, 80, 100},
                {Step(99, 1), 0, 0, 1, 21},
                {Step(100, 1), 1, 0, 0, 100},
                {Step(100, 2), 0, 0, 20, 100},
                {Step(100, 3), 0, 0, 100, 100},
                {Step(100, 4), 0, 0, 0, 100, Beside::kNever},
                {Look(199), 0, 2, 0, 1},
                {Look(200), 0, 3, 0, 0},
                {Step(5000, 1, kMaxCount), 3, 0, 100, 100},
            });
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(5000), 3}}));
}

TEST(SlidingLogTest, AddsUnitsOfEqualTimes) {
  LogSubject log(Make(Algorithm::kSlidingLog, 5, 100), 0, 5);
  Play(log, {
                {Step(7, 1), 1, 4, 0, 100},
                {Step(7, 1), 1, 3, 0, 100},
                {Step(7, 2), 1, 1, 0, 100},
                {Step(7, 2), 0, 1, 100, 100},
                {Step(8, 1), 1, 0, 0, 100},
            });
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(7), 4}, {At(8), 1}}));
}

TEST(SlidingLogTest, UsesTimeOfNewestEntryWhenClockIsBehind) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  Play(log, {
                {Step(10, 1), 1, 2, 0, 100},
                {Step(20, 1), 1, 1, 0, 100},
                {Step(100, 1), 1, 0, 0, 100},
                {Step(60, 1), 0, 0, 50, 140},
                {Step(0, 1), 0, 0, 110, 200},
                {Step(-1, 1), 0, 0, 100, 100, Beside::kRepaired},
            });
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(-1), 3}})) << "equal times do not share an entry";
  Play(log, {
                {Step(-1, 1), 0, 0, 100, 100},
                {Step(98, 1), 0, 0, 1, 1},
                {Step(99, 2), 1, 1, 0, 100},
                {Step(50, 1), 1, 0, 0, 149},
            });
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(99), 3}}));
}

TEST(SlidingLogTest, RepairsOnlyEntriesInTheFuture) {
  LogSubject log(Make(Algorithm::kSlidingLog, 9, 1000), 0, 9);
  Play(log, {
                {Step(0, 1), 1, 8, 0, 1000},
                {Step(900, 2), 1, 6, 0, 1000},
                {Refund(900, 1, 900), 1, 7, 0, 1000},
            });
  const Quota shorter = Make(Algorithm::kSlidingLog, 9, 800);
  const auto plan = sliding_log::Step(log.log(), shorter, 1, 0, At(50));
  EXPECT_EQ(plan.outcome.reset_after, Micros{800});
  EXPECT_EQ(plan.outcome.effect, Effect::kRepaired);
  std::array<Entry, 9> memory;
  sliding_log::Log copy(memory.data(), memory.size());
  copy.CopyFrom(log.log());
  sliding_log::Commit(copy, shorter, plan.change);
  ASSERT_EQ(copy.size(), 2u);
  EXPECT_EQ(copy[0], (Entry{At(0), 1}));
  EXPECT_EQ(copy[1], (Entry{At(50), 1}));
}

TEST(SlidingLogTest, AppliesDebitsAndRefunds) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  Play(log, {
                {Step(0, 1), 1, 2, 0, 100},
                {Debit(5, 7), 1, 0, 0, 100},
                {Step(6, 1), 0, 0, 99, 99},
                {Refund(6, 6, 5), 1, 1, 0, 99},
                {Refund(6, 1, 4), 1, 2, 0, 99},
                {Refund(6, 1, 4), 0, 2, 0, 99},
                {Refund(105, 1, 105), 0, 3, 0, 0},
            });
}

TEST(SlidingLogTest, StopsDebitsAtMaxDebt) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  Play(log, {
                {Debit(0, kMaxCost), 1, 0, 0, 100},
                // The debit adds nothing, so the time of the entry stays.
                {Debit(50, kMaxCost), 1, 0, 0, 50},
                {Refund(60, 31, 60), 1, 1, 0, 40},
            });
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(0), 2}}));
}

/// A refund of all units of an entry in the middle also removes the entry: the next request needs
/// its place.
TEST(SlidingLogTest, RefundRemovesEmptyEntry) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  Play(log, {
                {Step(0, 1), 1, 2, 0, 100},
                {Step(10, 1), 1, 1, 0, 100},
                {Step(20, 1), 1, 0, 0, 100},
                {Refund(20, 1, 10), 1, 1, 0, 100},
                {Step(30, 1), 1, 0, 0, 100},
                {Look(120), 0, 2, 0, 10},
            });
}

TEST(SlidingLogTest, AddsToNewestEntryWhenLogIsFull) {
  LogSubject cramped(Make(Algorithm::kSlidingLog, 5, 100), 0, 2);
  Play(cramped, {
                    {Step(0, 1), 1, 4, 0, 100},
                    {Step(10, 1), 1, 3, 0, 100},
                    {Step(30, 1), 1, 2, 0, 100},
                });
  EXPECT_EQ(Entries(cramped), (std::vector<Entry>{{At(0), 1}, {At(30), 2}}));
  // Debits may fill `limit` entries, even if the log has memory for more.
  LogSubject roomy(Make(Algorithm::kSlidingLog, 2, 100), 0, 8);
  Play(roomy, {
                  {Debit(0, 1), 1, 1, 0, 100},
                  {Debit(10, 1), 1, 0, 0, 100},
                  {Debit(20, 1), 1, 0, 0, 100},
              });
  EXPECT_EQ(Entries(roomy), (std::vector<Entry>{{At(0), 1}, {At(20), 2}}));
}

TEST(SlidingLogTest, CopiesEntriesInOrderAfterRingWrapsAround) {
  LogSubject log(Make(Algorithm::kSlidingLog, 3, 100), 0, 3);
  for (Tick at = 0; at < 1000; at += 40) ASSERT_EQ(log.Step(1, 1, at).admitted, 1);
  EXPECT_EQ(Entries(log), (std::vector<Entry>{{At(880), 1}, {At(920), 1}, {At(960), 1}}));
  std::array<Entry, 5> memory;
  sliding_log::Log copy(memory.data(), memory.size());
  copy.CopyFrom(log.log());
  EXPECT_EQ(copy.units(), 3);
  EXPECT_EQ(memory[0], (Entry{At(880), 1}));
  EXPECT_EQ(memory[2], (Entry{At(960), 1}));
}

TEST(SlidingLogTest, CountsExactlyUnderExtremeQuotas) {
  LogSubject shortest(Make(Algorithm::kSlidingLog, 1, 1), 0, 1);
  Play(shortest, {{Step(0, 1, 2), 1, 0, 1, 1}, {Step(1, 1), 1, 0, 0, 1}});
  LogSubject longest(Make(Algorithm::kSlidingLog, 10'000, property::kLongest), 0, 10'000);
  Play(longest, {
                    {Step(0, 10'000), 1, 0, 0, property::kLongest},
                    {Step(property::kLongest - 1, 1), 0, 0, 1, 1},
                    {Step(property::kLongest, 1), 1, 9'999, 0, property::kLongest},
                });
}

}  // namespace
}  // namespace tidegate

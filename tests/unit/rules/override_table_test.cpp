// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "unit/rules/allocations.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using Table = std::shared_ptr<const OverrideTable>;

OverrideTable::Entry Ban(const std::string& identity, const std::string& reason = {},
                         const std::string& rule = "per-key") {
  OverrideTable::Entry entry;
  entry.what = {.kind = Override::Kind::kBan,
                .rule = rule,
                .identity = identity,
                .limit = {},
                .reason = reason,
                .by = {}};
  return entry;
}

std::vector<OverrideTable::Entry> Bans(int count) {
  std::vector<OverrideTable::Entry> entries;
  for (int i = 0; i < count; ++i) entries.push_back(Ban("client-" + std::to_string(i)));
  return entries;
}

Table With(const Table& table, OverrideTable::Entry entry) {
  OverrideTable::Changes changes;
  changes.put.push_back(std::move(entry));
  return table->With(std::move(changes));
}

Table Without(const Table& table, const std::string& identity) {
  return table->With({.put = {}, .removed = {{"per-key", identity}}});
}

std::vector<std::string> Identities(const OverrideTable& table) {
  std::vector<std::string> identities;
  for (const auto* const entry : table.Sorted()) identities.push_back(entry->what.identity);
  return identities;
}

class OverrideTableTest : public testing::Test {
 protected:
  ManualClock clock_;
};

TEST_F(OverrideTableTest, FindsEntryOnlyUntilItExpires) {
  auto ending = Ban("a");
  ending.until = clock_.Now() + 10s;
  const Table in_base = OverrideTable::Make({ending, Ban("b")}, clock_);
  const Table in_delta = With(With(OverrideTable::Make({}, clock_), ending), Ban("b"));
  clock_.Advance(10s - 1us);
  for (const Table& table : {in_base, in_delta}) {
    const auto* const found = table->Find("per-key", "a");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(table->Left(*found), 1us);
  }
  clock_.Advance(1us);
  for (const Table& table : {in_base, in_delta}) {
    EXPECT_EQ(table->Find("per-key", "a"), nullptr);
    EXPECT_EQ(table->Left(*table->Sorted()[0]), 0us);
    EXPECT_EQ(table->size(), 2u) << "an expired entry was removed without a change";
  }
  clock_.Advance(24h * 365);
  for (const Table& table : {in_base, in_delta}) {
    ASSERT_NE(table->Find("per-key", "b"), nullptr);
    EXPECT_EQ(table->Left(*table->Find("per-key", "b")), std::nullopt);
    EXPECT_EQ(table->Find("other", "b"), nullptr);
  }
}

TEST_F(OverrideTableTest, ChangesReturnNewTableAndKeepOldOne) {
  const Table empty = OverrideTable::Make({}, clock_);
  EXPECT_TRUE(empty->empty());
  EXPECT_EQ(empty->version(), 1u);
  const Table one = With(empty, Ban("a", "first"));
  const Table replaced = With(one, Ban("a", "second"));
  const Table none = Without(replaced, "a");
  EXPECT_TRUE(empty->empty());
  EXPECT_EQ(one->Find("per-key", "a")->what.reason, "first");
  EXPECT_EQ(replaced->Find("per-key", "a")->what.reason, "second");
  EXPECT_EQ(replaced->size(), 1u);
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(none->Find("per-key", "a"), nullptr);
  EXPECT_EQ(none->version(), 4u);
}

TEST_F(OverrideTableTest, RemovesEntriesOfBaseTableAndAddsThemAgain) {
  const Table base = OverrideTable::Make({Ban("a"), Ban("b")}, clock_);
  const Table removed = Without(base, "a");
  EXPECT_EQ(removed->Find("per-key", "a"), nullptr);
  EXPECT_THAT(Identities(*removed), testing::ElementsAre("b"));
  const Table again = With(removed, Ban("a", "again"));
  EXPECT_EQ(again->Find("per-key", "a")->what.reason, "again");
  EXPECT_THAT(Identities(*again), testing::ElementsAre("a", "b"));
  const Table gone = Without(again, "a");
  EXPECT_EQ(gone->Find("per-key", "a"), nullptr)
      << "the removed entry of the base is visible again";
  EXPECT_TRUE(Without(gone, "b")->empty());
}

TEST_F(OverrideTableTest, ReturnsSameTableWhenNothingChanges) {
  const Table table = OverrideTable::Make({Ban("a")}, clock_);
  EXPECT_EQ(table->With({}), table);
  EXPECT_EQ(Without(table, "unknown"), table);
  const Table removed = Without(table, "a");
  EXPECT_EQ(Without(removed, "a"), removed);
}

TEST_F(OverrideTableTest, AppliesRemovalsBeforeAdditions) {
  const Table table = OverrideTable::Make({Ban("a", "old")}, clock_);
  const Table changed =
      table->With({.put = {Ban("a", "new")}, .removed = {{"per-key", "a"}, {"per-key", "b"}}});
  ASSERT_NE(changed->Find("per-key", "a"), nullptr);
  EXPECT_EQ(changed->Find("per-key", "a")->what.reason, "new");
  EXPECT_EQ(changed->size(), 1u);
}

TEST_F(OverrideTableTest, AddingOneBanCopiesNoOtherEntry) {
  const Table before = OverrideTable::Make(Bans(1000), clock_);
  const std::uint64_t allocations = AllocationsOfThisThread();
  const Table after = With(before, Ban("client-7", "new"));
  EXPECT_LT(AllocationsOfThisThread() - allocations, 20u)
      << "the number of allocations grows with the table";
  EXPECT_TRUE(after->SharesBaseWith(*before));
  for (int i = 0; i < 1000; ++i) {
    const std::string identity = "client-" + std::to_string(i);
    const auto* const entry = after->Find("per-key", identity);
    ASSERT_NE(entry, nullptr);
    if (i == 7) {
      EXPECT_EQ(entry->what.reason, "new");
    } else {
      EXPECT_EQ(entry, before->Find("per-key", identity)) << identity;
    }
  }
}

TEST_F(OverrideTableTest, MergesRarelyAndMovesNoEntry) {
  Table table = OverrideTable::Make(Bans(1000), clock_);
  const auto* const untouched = table->Find("per-key", "client-500");
  int merges = 0;
  for (int i = 0; i < 450; ++i) {
    const Table next = With(table, Ban("new-" + std::to_string(i)));
    if (!next->SharesBaseWith(*table)) ++merges;
    table = next;
    ASSERT_EQ(table->Find("per-key", "client-500"), untouched);
  }
  EXPECT_GE(merges, 5);
  EXPECT_LE(merges, 10) << "more than one merge per sqrt(2 * 1,000) changes";
  EXPECT_EQ(table->size(), 1450u);
}

TEST_F(OverrideTableTest, KeepsEntriesAliveWhileAnyTableHoldsThem) {
  Table table = OverrideTable::Make(Bans(3), clock_);
  const Table held = table;
  const auto* const entry = held->Find("per-key", "client-1");
  table = Without(table, "client-1");
  table = With(table, Ban("client-1", "another"));
  EXPECT_EQ(entry->what.reason, "");
  EXPECT_EQ(held->Find("per-key", "client-1"), entry);
  EXPECT_EQ(entry->what.identity, "client-1");
}

/// Applies thousands of random changes, of one or many entries each, to a table and to a std::map,
/// and compares them after each change. Keeps every 64th table to check that later changes do not
/// alter it.
TEST_F(OverrideTableTest, AgreesWithStdMapAcrossMerges) {
  using Model = std::map<std::pair<std::string, std::string>, std::string>;
  std::mt19937 random(17);
  const auto draw = [&](unsigned below) { return static_cast<int>(random() % below); };
  const auto agrees = [](const OverrideTable& table, const Model& model) {
    ASSERT_EQ(table.size(), model.size());
    ASSERT_EQ(table.empty(), model.empty());
    auto expected = model.begin();
    for (const auto* const entry : table.Sorted()) {
      ASSERT_NE(expected, model.end());
      ASSERT_EQ(std::pair(entry->what.rule, entry->what.identity), expected->first);
      ASSERT_EQ(entry->what.reason, expected->second);
      ASSERT_EQ(table.Find(entry->what.rule, entry->what.identity), entry);
      ++expected;
    }
    ASSERT_EQ(expected, model.end());
  };
  Table table = OverrideTable::Make({}, clock_);
  Model model;
  std::vector<std::pair<Table, Model>> kept;
  int merges = 0;
  for (int step = 0; step < 3000; ++step) {
    // The table grows for 500 steps and then shrinks for 500 steps, in turn.
    const bool growing = step / 500 % 2 == 0;
    OverrideTable::Changes changes;
    const int count = draw(50) == 0 ? 30 : 1 + draw(3);
    for (int i = 0; i < count; ++i) {
      const std::string rule = "r" + std::to_string(draw(3));
      const std::string identity = std::to_string(draw(200));
      if (draw(10) < (growing ? 2 : 8)) {
        changes.removed.push_back({rule, identity});
      } else {
        changes.put.push_back(Ban(identity, std::to_string(step * 100 + i), rule));
      }
    }
    for (const auto& key : changes.removed) model.erase({key.rule, key.identity});
    for (const auto& put : changes.put) {
      model[{put.what.rule, put.what.identity}] = put.what.reason;
    }
    const Table next = table->With(std::move(changes));
    if (!next->SharesBaseWith(*table)) ++merges;
    ASSERT_GE(next->version(), table->version());
    table = next;
    ASSERT_NO_FATAL_FAILURE(agrees(*table, model)) << step;
    ASSERT_EQ(table->Find("r0", "unknown"), nullptr);
    if (step % 64 == 0) kept.emplace_back(table, model);
  }
  EXPECT_GT(merges, 50);
  EXPECT_LT(merges, 1500);
  for (const auto& [old, then] : kept) ASSERT_NO_FATAL_FAILURE(agrees(*old, then));
}

}  // namespace
}  // namespace tidegate

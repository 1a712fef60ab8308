// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_overrides.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Entry = SharedOverrides::Entry;
using Table = SharedOverrides::Table;

TEST(OverrideTableDifferenceTest, DifferenceOfEqualTablesIsEmpty) {
  const Table table{7, {{"a", "1", 1, std::nullopt}, {"b", "2", 2, 20}}};
  const Table reordered{9, {table.entries[1], table.entries[0]}};
  EXPECT_TRUE(RedisOverrides::Difference(table, reordered).empty());
  EXPECT_TRUE(RedisOverrides::Difference({}, {}).empty());
}

TEST(OverrideTableDifferenceTest, ListsAddedReplacedAndRemovedEntriesOnly) {
  const Table before{7,
                     {{"kept", "1", 1, std::nullopt},
                      {"value", "1", 1, std::nullopt},
                      {"end", "1", 1, 10},
                      {"gone", "1", 1, std::nullopt}}};
  const Table after{9,
                    {{"new", "1", 9, std::nullopt},
                     {"kept", "1", 1, std::nullopt},
                     {"value", "2", 1, std::nullopt},
                     {"end", "1", 1, 11}}};
  const SharedOverrides::Delta delta = RedisOverrides::Difference(before, after);
  EXPECT_EQ(delta.now_ms, 9);
  EXPECT_THAT(delta.changed, ElementsAre(after.entries[0], after.entries[2], after.entries[3]));
  EXPECT_THAT(delta.removed, ElementsAre("gone"));
}

TEST(OverrideTableDifferenceTest, RemovesEverythingWhenNewTableIsEmpty) {
  const Table before{7, {{"a", "1", 1, std::nullopt}, {"b", "2", 2, 20}}};
  const SharedOverrides::Delta delta = RedisOverrides::Difference(before, {9, {}});
  EXPECT_THAT(delta.changed, IsEmpty());
  EXPECT_THAT(delta.removed, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace tidegate::redis

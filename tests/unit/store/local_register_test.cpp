// SPDX-License-Identifier: Apache-2.0
#include "store/local_register.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

class LocalRegisterTest : public testing::Test {
 protected:
  Result<FleetRegister::Change> Put(const std::string& field,
                                    std::optional<std::chrono::milliseconds> ttl = std::nullopt) {
    Result<FleetRegister::Change> result = std::unexpected(Error{});
    register_.Put(field, "value", ttl, "put " + field, [&](auto change) { result = change; });
    return result;
  }
  ManualClock clock_;
  FleetRegister::Table table_;
  LocalRegister register_{clock_, [this](const FleetRegister::Table& table) { table_ = table; },
                          20};
};

TEST_F(LocalRegisterTest, TellsOfEveryChange) {
  ASSERT_TRUE(Put("a", 5s)->expires_ms);
  ASSERT_TRUE(Put("b"));
  ASSERT_EQ(table_.entries.size(), 2u);
  EXPECT_EQ(table_.entries[0].field, "a");
  EXPECT_EQ(table_.entries[0].expires_ms, table_.now_ms + 5000);
  EXPECT_EQ(table_.entries[1].expires_ms, std::nullopt);
  clock_.Advance(5s);
  bool applied = true;
  register_.Remove("a", "remove a", [&](auto change) { applied = change->applied; });
  EXPECT_FALSE(applied) << "it had ended";
  EXPECT_EQ(table_.entries.size(), 1u);
  register_.Remove("b", "remove b", [&](auto change) { applied = change->applied; });
  EXPECT_TRUE(applied);
  EXPECT_TRUE(table_.entries.empty());
}

TEST_F(LocalRegisterTest, IsBoundedAndMakesRoomForWhatReplacesSomething) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Put(std::to_string(i), 1s));
  EXPECT_EQ(Put("more").error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(Put("7")) << "it is there already";
  clock_.Advance(1s);
  EXPECT_TRUE(Put("more")) << "the others have ended";
}

TEST_F(LocalRegisterTest, KeepsTheLatestRecords) {
  for (std::size_t i = 0; i < FleetRegister::kRecords + 5; ++i) {
    register_.Note(std::to_string(i), i % 2 == 0, [](auto) {});
  }
  std::vector<FleetRegister::Record> records;
  register_.Records(5000, [&](auto all) { records = *all; });
  ASSERT_EQ(records.size(), FleetRegister::kRecords);
  EXPECT_EQ(records.front().text, std::to_string(FleetRegister::kRecords + 4));
  EXPECT_TRUE(records.front().applied);
  register_.Records(2, [&](auto all) { records = *all; });
  EXPECT_EQ(records.size(), 2u);
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "store/shared_overrides.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <expected>
#include <utility>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

class LocalOverridesTest : public testing::Test {
 protected:
  Result<SharedOverrides::Change> Put(const std::string& field,
                                      std::optional<std::chrono::milliseconds> ttl = std::nullopt) {
    Result<SharedOverrides::Change> result = std::unexpected(Error{});
    register_.Put(field, "value", ttl, "put " + field, [&](auto change) { result = change; });
    return result;
  }
  [[nodiscard]] bool Remove(const std::string& field) {
    bool applied = false;
    register_.Remove(field, "remove " + field, [&](auto change) { applied = change->applied; });
    return applied;
  }
  /// Returns the changes that were reported since the last call.
  std::vector<SharedOverrides::Delta> Reported() { return std::exchange(reported_, {}); }

  ManualClock clock_;
  std::vector<SharedOverrides::Delta> reported_;
  LocalOverrides register_{
      clock_, [this](const SharedOverrides::Delta& delta) { reported_.push_back(delta); }, 20};
};

TEST_F(LocalOverridesTest, ReportsOnlyTheEntryThatChanged) {
  ASSERT_TRUE(Put("a", 5s)->expires_ms);
  auto reported = Reported();
  ASSERT_EQ(reported.size(), 1u);
  ASSERT_EQ(reported[0].changed.size(), 1u);
  EXPECT_EQ(reported[0].changed[0].field, "a");
  EXPECT_EQ(reported[0].changed[0].expires_ms, reported[0].now_ms + 5000);
  EXPECT_TRUE(reported[0].removed.empty());

  ASSERT_TRUE(Put("b"));
  reported = Reported();
  ASSERT_EQ(reported.size(), 1u);
  ASSERT_EQ(reported[0].changed.size(), 1u);
  EXPECT_EQ(reported[0].changed[0].field, "b");
  EXPECT_EQ(reported[0].changed[0].expires_ms, std::nullopt);
  EXPECT_TRUE(reported[0].removed.empty());
}

TEST_F(LocalOverridesTest, ReportsExpiredEntriesAsRemoved) {
  ASSERT_TRUE(Put("a", 5s));
  ASSERT_TRUE(Put("b"));
  clock_.Advance(5s);
  (void)Reported();
  EXPECT_FALSE(Remove("a")) << "an expired entry was removed again";
  auto reported = Reported();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].removed, std::vector<std::string>{"a"});
  EXPECT_TRUE(reported[0].changed.empty());

  EXPECT_TRUE(Remove("b"));
  reported = Reported();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].removed, std::vector<std::string>{"b"});
}

TEST_F(LocalOverridesTest, ReportsNothingIfNothingChanges) {
  ASSERT_TRUE(Put("a"));
  (void)Reported();
  EXPECT_FALSE(Remove("unknown"));
  ASSERT_TRUE(Put("a")) << "an equal value was rejected";
  register_.Note("a reload", true, [](auto) {});
  EXPECT_TRUE(Reported().empty());
}

TEST_F(LocalOverridesTest, ReportsReAddedExpiredEntryAsChangedOnly) {
  ASSERT_TRUE(Put("a", 5s));
  clock_.Advance(5s);
  (void)Reported();
  ASSERT_TRUE(Put("a", 5s));
  const auto reported = Reported();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].changed.size(), 1u);
  EXPECT_TRUE(reported[0].removed.empty());
}

TEST_F(LocalOverridesTest, FullTableAcceptsReplacementsOnly) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Put(std::to_string(i), 1s));
  EXPECT_EQ(Put("more").error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(Put("7")) << "the replacement of an existing entry was rejected";
  clock_.Advance(1s);
  EXPECT_TRUE(Put("more")) << "an entry was rejected although others have expired";
}

TEST_F(LocalOverridesTest, RecordsOfFailuresDoNotDisplaceRecordsOfChanges) {
  register_.Note("a change", true, [](auto) {});
  for (std::size_t i = 0; i < 10 * SharedOverrides::kRecords; ++i) {
    register_.NoteFailure("failure " + std::to_string(i), [](auto) {});
  }
  std::vector<SharedOverrides::Record> records;
  register_.Records(SharedOverrides::kRecords, [&](auto all) { records = all->records; });
  EXPECT_EQ(records.size(), SharedOverrides::kFailureRecords + 1);
  EXPECT_EQ(std::ranges::count(records, "a change", &SharedOverrides::Record::text), 1);
  register_.Records(3, [&](auto all) { records = all->records; });
  EXPECT_EQ(records.size(), 3u);
}

TEST(SharedOverridesTest, MergesAuditRecordsByTime) {
  using Record = SharedOverrides::Record;
  const auto merged =
      SharedOverrides::Merge({Record{5, true, "e"}, Record{1, true, "a"}},
                             std::vector{Record{4, false, "d"}, Record{2, false, "b"}}, 3);
  std::string order;
  for (const Record& record : merged) order += record.text;
  EXPECT_EQ(order, "edb");
}

TEST_F(LocalOverridesTest, KeepsLatestAuditRecords) {
  for (std::size_t i = 0; i < SharedOverrides::kRecords + 5; ++i) {
    register_.Note(std::to_string(i), i % 2 == 0, [](auto) {});
  }
  std::vector<SharedOverrides::Record> records;
  register_.Records(5000, [&](auto all) { records = all->records; });
  ASSERT_EQ(records.size(), SharedOverrides::kRecords);
  EXPECT_EQ(records.front().text, std::to_string(SharedOverrides::kRecords + 4));
  EXPECT_TRUE(records.front().applied);
  register_.Records(2, [&](auto all) { records = all->records; });
  EXPECT_EQ(records.size(), 2u);
}

TEST_F(LocalOverridesTest, ReportsNumberOfMissingAuditRecords) {
  SharedOverrides::History history;
  const auto read = [&] { register_.Records(1, [&](auto all) { history = all->history; }); };
  const auto start = std::chrono::floor<std::chrono::milliseconds>(clock_.Now());
  clock_.Advance(5s);
  register_.Note("a change", true, [](auto) {});
  read();
  EXPECT_TRUE(history.complete());
  EXPECT_EQ(history.since_ms, start.time_since_epoch().count())
      << "the history does not begin at the start of the process";
  for (std::size_t i = 0; i < SharedOverrides::kRecords + 2; ++i) {
    register_.Note("another", true, [](auto) {});
  }
  for (std::size_t i = 0; i < SharedOverrides::kFailureRecords + 7; ++i) {
    register_.NoteFailure("failure", [](auto) {});
  }
  read();
  EXPECT_FALSE(history.complete());
  EXPECT_EQ(history.missing_changes, 3u);
  EXPECT_EQ(history.missing_failures, 7u);
  EXPECT_EQ(history.lost_ms, std::nullopt);
}

}  // namespace
}  // namespace tidegate

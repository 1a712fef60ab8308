// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/shared_overrides.hpp"
#include "unit/rules/allocations.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class LiveOverridesTest : public testing::Test {
 protected:
  static SharedOverrides::Entry Ban(const std::string& identity,
                                    std::optional<std::int64_t> expires_ms = std::nullopt) {
    const Override what{.kind = Override::Kind::kBan,
                        .rule = "per-key",
                        .identity = identity,
                        .limit = {},
                        .reason = {},
                        .by = "alice"};
    return {Override::Field("per-key", identity), what.Text(), 5, expires_ms};
  }
  LiveOverrides::Update Change(std::vector<SharedOverrides::Entry> changed,
                               const std::vector<std::string>& removed = {}) {
    return live_.Apply({.now_ms = 1'000, .changed = std::move(changed), .removed = removed});
  }
  [[nodiscard]] const OverrideTable::Entry* Find(std::string_view identity) const {
    return live_.table()->Find("per-key", identity);
  }

  ManualClock clock_;
  LiveOverrides live_{clock_};
};

TEST_F(LiveOverridesTest, AppliesAddedReplacedAndRemovedEntries) {
  EXPECT_TRUE(live_.table()->empty());
  auto update = Change({Ban("a"), Ban("b")});
  EXPECT_EQ(update.table, live_.table());
  EXPECT_EQ(update.invalid, 0u);
  EXPECT_THAT(update.keys, ElementsAre(OverrideKey{"per-key", "a"}, OverrideKey{"per-key", "b"}));
  ASSERT_NE(Find("a"), nullptr);
  EXPECT_EQ(Find("a")->what.by, "alice");
  EXPECT_EQ(Find("a")->since_ms, 5);

  update = Change({}, {"per-key a"});
  EXPECT_THAT(update.keys, ElementsAre(OverrideKey{"per-key", "a"}));
  EXPECT_EQ(Find("a"), nullptr);
  EXPECT_NE(Find("b"), nullptr);
}

TEST_F(LiveOverridesTest, BuildsQuotaFromQuotaOverride) {
  Override what{.kind = Override::Kind::kQuota,
                .rule = "per-key",
                .identity = "a",
                .algorithm = Algorithm::kGcra,
                .limit = LimitText::Parse("5/30s").value(),
                .burst = 7,
                .reason = {},
                .by = {}};
  (void)Change({{"per-key a", what.Text(), 5, std::nullopt}});
  ASSERT_NE(Find("a"), nullptr);
  ASSERT_TRUE(Find("a")->quota);
  EXPECT_EQ(Find("a")->quota->capacity(), 7);
}

TEST_F(LiveOverridesTest, FollowsClockStepOfRedis) {
  (void)live_.Apply({.now_ms = 1'000, .changed = {Ban("a", 61'000)}, .removed = {}});
  EXPECT_EQ(live_.table()->Left(*Find("a")), 60s);
  // Redis has a new master whose clock is half a minute ahead.
  (void)live_.Apply({.now_ms = 31'000, .changed = {Ban("b")}, .removed = {}});
  EXPECT_EQ(live_.table()->Left(*Find("a")), 30s);
}

TEST_F(LiveOverridesTest, TranslatesExpiryToLocalClock) {
  (void)Change({Ban("short", 1'000 + 250), Ban("far", INT64_MAX)});
  EXPECT_EQ(live_.table()->Left(*Find("short")), 250ms);
  EXPECT_EQ(live_.table()->Left(*Find("far")), std::nullopt)
      << "an expiry that Tidegate cannot have written was not ignored";
  EXPECT_EQ(Find("short")->expires_ms, 1'250);
  clock_.Advance(250ms);
  EXPECT_EQ(Find("short"), nullptr);
}

TEST_F(LiveOverridesTest, CountsInvalidEntriesAndRemovesReplacedOnes) {
  (void)Change({Ban("a"), Ban("b")});
  auto other_key = Ban("c");
  other_key.field = "per-key b";
  const auto update =
      Change({{"per-key a", "nonsense", 6, std::nullopt}, other_key, {"z", "garbage", 6, {}}});
  EXPECT_EQ(update.invalid, 3u);
  EXPECT_THAT(update.keys, ElementsAre(OverrideKey{"per-key", "a"}, OverrideKey{"per-key", "b"}));
  EXPECT_TRUE(live_.table()->empty());
  EXPECT_THAT(Change({}, {"z"}).keys, IsEmpty());
}

TEST_F(LiveOverridesTest, ParsesOnlyTheChangedEntryOfAThousand) {
  SharedOverrides::Delta last;
  LocalOverrides shared_overrides(clock_, [&](const SharedOverrides::Delta& delta) {
    last = delta;
    (void)live_.Apply(delta);
  });
  const auto ban = [&](const std::string& identity) {
    const SharedOverrides::Entry entry = Ban(identity);
    shared_overrides.Put(entry.field, entry.value, std::nullopt, "ban", [](auto) {});
  };
  for (int i = 0; i < 999; ++i) ban("client-" + std::to_string(i));
  std::vector<const OverrideTable::Entry*> before = live_.table()->Sorted();
  const auto held = live_.table();
  ASSERT_EQ(before.size(), 999u);

  ban("one-more");
  ASSERT_EQ(last.changed.size(), 1u);
  EXPECT_THAT(last.removed, IsEmpty());
  ASSERT_EQ(live_.table()->size(), 1000u);
  // An entry that was parsed again would have another address, because `held` keeps the old entries
  // alive.
  for (const auto* const entry : before) {
    ASSERT_EQ(Find(entry->what.identity), entry) << entry->what.identity;
  }
  // Applying the ban costs a bounded number of allocations; parsing would cost about ten for each
  // entry.
  const std::uint64_t allocations = AllocationsOfThisThread();
  (void)live_.Apply(last);
  EXPECT_LT(AllocationsOfThisThread() - allocations, 200u);
}

}  // namespace
}  // namespace tidegate

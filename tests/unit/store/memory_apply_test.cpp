// SPDX-License-Identifier: Apache-2.0
// Requests with several charges: all are applied or none, and shadow charges are evaluated beside
// them.
#include "fixture.hpp"

namespace tidegate {
namespace {

using MemoryApplyTest = MemoryStoreTest;

TEST_F(MemoryApplyTest, DeniesAboveLimitWithEveryAlgorithm) {
  for (int a = 0; a < kAlgorithms; ++a) {
    const Quota quota = MakeQuota({.algorithm = static_cast<Algorithm>(a), .limit = 3});
    SCOPED_TRACE(Name(quota.algorithm()));
    for (int i = 0; i < 3; ++i) {
      const std::string lease = std::to_string(i);
      const Decision d = Decide({.rule = "r", .identity = "i", .quota = &quota, .lease = lease});
      EXPECT_TRUE(d.allowed);
      EXPECT_EQ(d.remaining, 2 - i);
      EXPECT_EQ(d.limit, 3);
      EXPECT_EQ(d.rule, "r");
      EXPECT_EQ(d.retry_after, 0us);
      EXPECT_GT(d.reset_after, 0us);
    }
    const Charge charge{.rule = "r", .identity = "i", .quota = &quota, .lease = "x"};
    const Decision denied = Decide(charge);
    EXPECT_FALSE(denied.allowed);
    EXPECT_FALSE(denied.never);
    EXPECT_EQ(denied.remaining, 0);
    ASSERT_GT(denied.retry_after, 0us);
    // retry_after is exact to one tick.
    clock_.Advance(denied.retry_after - 1us);
    EXPECT_FALSE(Decide(charge).allowed);
    clock_.Advance(1us);
    EXPECT_TRUE(Decide(charge).allowed);
  }
}

TEST_F(MemoryApplyTest, AppliesAllChargesOrNone) {
  const Quota wide = MakeQuota({.limit = 10});
  const Quota narrow = MakeQuota({.algorithm = Algorithm::kFixedWindow, .limit = 2});
  const Quota log = MakeQuota({.algorithm = Algorithm::kSlidingLog, .limit = 5});
  const std::vector<Charge> charges = {
      {"wide", "i", &wide}, {"narrow", "i", &narrow}, {"log", "i", &log}};
  EXPECT_EQ(Apply(charges), 1);
  EXPECT_EQ(Apply(charges), 1);
  EXPECT_EQ(Apply(charges), 0);
  EXPECT_TRUE(decisions_[0].allowed);
  EXPECT_FALSE(decisions_[1].allowed);
  EXPECT_TRUE(decisions_[2].allowed);
  EXPECT_EQ(decisions_[0].remaining, 8) << "a denied request consumed units";
  EXPECT_EQ(decisions_[2].remaining, 3) << "a denied request consumed units";
  EXPECT_EQ(Remaining(charges[0]), 8);
  EXPECT_EQ(Remaining(charges[1]), 0);
  EXPECT_EQ(Remaining(charges[2]), 3);
}

TEST_F(MemoryApplyTest, DeniedRequestAcquiresNoLease) {
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1, .period = 10s});
  const Quota never = MakeQuota({.limit = 1});
  const Charge slot{.rule = "s", .identity = "i", .quota = &slots, .lease = "a"};
  EXPECT_EQ(Apply({slot, {.rule = "n", .identity = "i", .quota = &never, .cost = 2}}), 0);
  EXPECT_TRUE(decisions_[0].allowed);
  EXPECT_TRUE(decisions_[1].never);
  EXPECT_EQ(Remaining(slot), 1);
  EXPECT_EQ(store_->Release(slot).value(), Applied::kNo);
}

TEST_F(MemoryApplyTest, AdmitsAsManyRequestsAsTheTightestChargeAllows) {
  const Quota ten = MakeQuota({.limit = 10});
  const Quota seven = MakeQuota({.algorithm = Algorithm::kGcra, .limit = 7});
  const std::vector<Charge> charges = {{.rule = "a", .identity = "i", .quota = &ten, .cost = 2},
                                       {.rule = "b", .identity = "i", .quota = &seven, .cost = 2}};
  EXPECT_EQ(Apply(charges, 100), 3);
  EXPECT_TRUE(decisions_[0].allowed);
  EXPECT_FALSE(decisions_[1].allowed);
  EXPECT_EQ(decisions_[0].remaining, 4);
  EXPECT_EQ(decisions_[1].remaining, 1);
  EXPECT_GT(decisions_[1].retry_after, 0us);
}

TEST_F(MemoryApplyTest, ShadowRulesCountAdmittedRequestsAndNeverDeny) {
  const Quota three = MakeQuota({.limit = 3});
  const Quota one = MakeQuota({.limit = 1});
  const std::vector<Charge> charges = {
      {.rule = "e", .identity = "i", .quota = &three},
      {.rule = "s", .identity = "i", .quota = &one, .mode = Mode::kShadow}};
  EXPECT_EQ(Apply(charges), 1);
  EXPECT_TRUE(decisions_[1].allowed);
  EXPECT_EQ(Apply(charges), 1) << "a shadow rule denied a request";
  EXPECT_FALSE(decisions_[1].allowed) << "the shadow rule does not report that it would deny";
  EXPECT_EQ(Apply(charges), 1);
  EXPECT_EQ(Apply(charges), 0);

  // A denied request is not charged to the shadow rule.
  clock_.Advance(10s);
  const std::vector<Charge> refused = {
      {.rule = "e", .identity = "i", .quota = &three, .cost = 4},
      {.rule = "s", .identity = "i", .quota = &one, .mode = Mode::kShadow}};
  EXPECT_EQ(Apply(refused), 0);
  EXPECT_TRUE(decisions_[1].allowed);
  EXPECT_EQ(Remaining(refused[1]), 1);
}

TEST_F(MemoryApplyTest, ShadowChargesAloneAdmitEverything) {
  const Quota one = MakeQuota({.limit = 1});
  const std::vector<Charge> charges = {
      {.rule = "s", .identity = "i", .quota = &one, .mode = Mode::kShadow}};
  EXPECT_EQ(Apply(charges, 5), 5);
  EXPECT_FALSE(decisions_[0].allowed);
  EXPECT_EQ(decisions_[0].remaining, 0);
}

TEST_F(MemoryApplyTest, AppliesLargestNumberOfChargesPerRequest) {
  const Quota one = MakeQuota({.limit = 1});
  std::vector<std::string> rules;
  for (std::size_t i = 0; i < kMaxCharges; ++i) rules.push_back("rule" + std::to_string(i));
  std::vector<Charge> charges;
  for (const std::string& rule : rules) charges.push_back({rule, "i", &one});
  EXPECT_EQ(Apply(charges), 1);
  EXPECT_EQ(Apply(charges), 0);
}

TEST_F(MemoryApplyTest, RejectsInvalidRequests) {
  const Quota quota = MakeQuota({.limit = 5});
  const Quota slots = MakeQuota({.algorithm = Algorithm::kConcurrency, .limit = 1});
  const auto message = [&](const std::vector<Charge>& charges, std::int64_t count = 1) {
    std::vector<Decision> decisions(charges.size());
    const auto result = store_->Apply(charges, count, decisions);
    return result ? std::string("accepted") : result.error().message;
  };
  const Charge good{"r", "i", &quota};
  EXPECT_NE(message({}).find("at least one"), std::string::npos);
  EXPECT_NE(message(std::vector<Charge>(33, good)).find("the most is 32"), std::string::npos);
  EXPECT_NE(message({good, good}).find("same key"), std::string::npos);
  EXPECT_NE(message({good}, 0).find("count"), std::string::npos);
  EXPECT_NE(message({good}, kMaxCount + 1).find("count"), std::string::npos);
  for (const std::int64_t cost : {std::int64_t{0}, std::int64_t{-1}, kMaxCost + 1, INT64_MAX}) {
    EXPECT_NE(message({{"r", "i", &quota, cost}}).find("cost"), std::string::npos) << cost;
  }
  EXPECT_NE(message({{"r", "", &quota}}).find("empty identity"), std::string::npos);
  EXPECT_NE(message({{"", "i", &quota}}).find("rule"), std::string::npos);
  EXPECT_NE(message({{"r", "i", nullptr}}).find("quota"), std::string::npos);
  EXPECT_NE(message({{"r", "i", &slots}}).find("lease id"), std::string::npos);
  EXPECT_EQ(Remaining(good), 5) << "a rejected call consumed units";
  EXPECT_FALSE(store_->Apply(Charge{"r", "i", &quota, 0}).has_value());
}

}  // namespace
}  // namespace tidegate

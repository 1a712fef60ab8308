// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tidegate {
namespace {

using Balance = UpstreamSpec::Balance;

const Member::Clock::time_point kNow{std::chrono::hours{1}};

Members Make(std::initializer_list<int> weights) {
  Members members;
  for (const int weight : weights) {
    members.push_back(std::make_shared<Member>());
    members.back()->weight = weight;
    members.back()->text = std::string(1, static_cast<char>('a' + members.size() - 1));
  }
  return members;
}

/// Picks `count` members in a row and returns their names. Each member is released at once.
std::string Picks(Balancer& balancer, int count) {
  std::string names;
  for (int i = 0; i < count; ++i) {
    const auto picked = balancer.Pick({}, kNow);
    if (picked.member == nullptr) {
      names += '-';
      continue;
    }
    picked.member->active.fetch_sub(1);
    names += picked.member->text;
  }
  return names;
}

TEST(BalancerTest, RoundRobinPicksMembersInTurn) {
  const Members members = Make({1, 1, 1});
  Balancer balancer(Balance::kRoundRobin, 0);
  balancer.Use(members);
  EXPECT_EQ(Picks(balancer, 7), "abcabca");
}

TEST(BalancerTest, RoundRobinSpreadsPicksOfMemberWithHighWeight) {
  const Members members = Make({5, 1, 1});
  Balancer balancer(Balance::kRoundRobin, 0);
  balancer.Use(members);
  EXPECT_EQ(Picks(balancer, 7), "aabacaa");
}

TEST(BalancerTest, LeastRequestsPicksMemberWithFewestRequestsPerWeight) {
  const Members members = Make({1, 2});
  members[0]->active = 1;
  members[1]->active = 2;
  Balancer balancer(Balance::kLeastRequests, 0);
  balancer.Use(members);
  // (1 + 1) / 1 requests per weight for `a`, (2 + 1) / 2 for `b`: `b` has fewer.
  EXPECT_EQ(balancer.Pick({}, kNow).member->text, "b");
  EXPECT_EQ(members[1]->active, 3u);
  // Both have 2 requests per weight: the next one in turn is picked, which is `a` after `b`.
  EXPECT_EQ(balancer.Pick({}, kNow).member->text, "a");
  EXPECT_EQ(balancer.Pick({}, kNow).member->text, "b");
}

TEST(BalancerTest, LeastRequestsBreaksTiesInTurn) {
  const Members members = Make({1, 1, 1});
  Balancer balancer(Balance::kLeastRequests, 0);
  balancer.Use(members);
  EXPECT_EQ(Picks(balancer, 6), "abcabc");
}

TEST(BalancerTest, SkipsMembersThatAreDownOrEjected) {
  const Members members = Make({1, 1, 1});
  members[0]->healthy = false;
  members[1]->ejected_until = (kNow + std::chrono::seconds{1}).time_since_epoch().count();
  Balancer balancer(Balance::kRoundRobin, 0);
  balancer.Use(members);
  EXPECT_EQ(Picks(balancer, 3), "ccc");
  members[2]->healthy = false;
  const auto none = balancer.Pick({}, kNow);
  EXPECT_EQ(none.member, nullptr);
  EXPECT_EQ(none.lack, Balancer::Lack::kDown);
  // The ejection ends after its time, without a call of any function.
  EXPECT_EQ(balancer.Pick({}, kNow + std::chrono::seconds{2}).member->text, "b");
}

TEST(BalancerTest, PicksNoMemberAboveMaxRequests) {
  const Members members = Make({1, 1});
  Balancer balancer(Balance::kRoundRobin, 2);
  balancer.Use(members);
  std::map<std::string, int> taken;
  for (int i = 0; i < 4; ++i) ++taken[balancer.Pick({}, kNow).member->text];
  EXPECT_EQ(taken["a"], 2);
  EXPECT_EQ(taken["b"], 2);
  const auto full = balancer.Pick({}, kNow);
  EXPECT_EQ(full.member, nullptr);
  EXPECT_EQ(full.lack, Balancer::Lack::kFull);
  EXPECT_EQ(members[0]->active, 2u);
  members[1]->active = 1;
  EXPECT_EQ(balancer.Pick({}, kNow).member->text, "b");
}

TEST(BalancerTest, PrefersMembersThatWereNotTried) {
  const Members members = Make({1, 1});
  Balancer balancer(Balance::kRoundRobin, 0);
  balancer.Use(members);
  const Member* const tried[] = {members[0].get()};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(balancer.Pick(tried, kNow).member->text, "b");
  members[1]->healthy = false;
  // All members were tried: a tried one is better than none.
  EXPECT_EQ(balancer.Pick(tried, kNow).member->text, "a");
}

}  // namespace
}  // namespace tidegate

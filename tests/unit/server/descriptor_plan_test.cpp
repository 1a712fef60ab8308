// SPDX-License-Identifier: Apache-2.0
#include "server/listener_group.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tidegate {
namespace {

Config WithGateway() {
  Config config;
  config.listen.gateway = "127.0.0.1:0";
  return config;
}

TEST(DescriptorPlanTest, LeavesDescriptorsToAdminAndStore) {
  struct Row {
    std::uint64_t limit;
    int clients;
    int upstreams;
    int admin;
  };
  for (const Row& row :
       {Row{200, 175, 175, 188}, Row{1024, 896, 896, 960}, Row{20'000, 19'744, 19'744, 19'872},
        Row{64, 48, 48, 56}, Row{20, 10, 10, 15}}) {
    const DescriptorPlan plan = PlanDescriptors(row.limit, Config{});
    EXPECT_EQ(plan.clients, row.clients) << row.limit;
    EXPECT_EQ(plan.upstreams, row.upstreams) << row.limit;
    EXPECT_EQ(plan.admin, row.admin) << row.limit;
    EXPECT_EQ(plan.reserved(), row.limit - static_cast<std::uint64_t>(row.upstreams)) << row.limit;
  }
}

TEST(DescriptorPlanTest, ReservesQuarterOfDescriptorsForUpstreams) {
  const DescriptorPlan plan = PlanDescriptors(1000, WithGateway());
  EXPECT_EQ(plan.upstreams, 875);
  EXPECT_EQ(plan.clients, 625);
}

TEST(DescriptorPlanTest, DoesNotRestrictUnknownOrHugeLimits) {
  constexpr int kAny = std::numeric_limits<int>::max();
  EXPECT_EQ(PlanDescriptors(0, WithGateway()).clients, kAny);
  EXPECT_EQ(PlanDescriptors(0, WithGateway()).admin, kAny);
  EXPECT_EQ(PlanDescriptors(std::numeric_limits<std::uint64_t>::max(), Config{}).clients, kAny);
}

TEST(DescriptorPlanTest, CountsEveryListenerAndConnectionsToUpstreams) {
  Config config;
  config.limits.connections = 1000;
  config.listen = {.api = "127.0.0.1:1", .admin = "", .gateway = "", .resp = ""};
  EXPECT_EQ(DescriptorsNeeded(config), 1256u);
  config.listen.admin = "127.0.0.1:2";
  config.listen.resp = "127.0.0.1:3";
  EXPECT_EQ(DescriptorsNeeded(config), 3256u);
  config.listen.gateway = "127.0.0.1:4";
  EXPECT_EQ(DescriptorsNeeded(config), 5256u);
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gateway/upstream_monitor.hpp"

namespace tidegate {
namespace {

TEST(HealthCountTest, ChangesStateAfterConfiguredNumberOfEqualResults) {
  const UpstreamSpec::Health health{.healthy = 2, .unhealthy = 3};
  HealthCount count;
  EXPECT_EQ(count.Note(false, health), std::nullopt);
  EXPECT_EQ(count.Note(false, health), std::nullopt);
  EXPECT_EQ(count.Note(true, health), std::nullopt);
  EXPECT_EQ(count.Note(false, health), std::nullopt);
  EXPECT_EQ(count.Note(false, health), std::nullopt);
  EXPECT_EQ(count.Note(false, health), false);
  EXPECT_EQ(count.Note(false, health), false);
  EXPECT_EQ(count.Note(true, health), std::nullopt);
  EXPECT_EQ(count.Note(true, health), true);
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

Override Some(Override::Kind kind) {
  Override made{.kind = kind,
                .rule = "per-key",
                .identity = "client_ip=192.0.2.1",
                .limit = {},
                .reason = "said \"so\"\n",
                .by = "alice"};
  if (kind == Override::Kind::kQuota) {
    made.algorithm = Algorithm::kGcra;
    made.limit = LimitText::Parse("5/30s").value();
    made.burst = 7;
  }
  return made;
}

TEST(OverrideTextTest, RoundTripsThroughText) {
  for (int i = 0; i < kOverrideKinds; ++i) {
    const Override made = Some(static_cast<Override::Kind>(i));
    const auto read = Override::Parse(made.Text());
    ASSERT_TRUE(read) << made.Text();
    EXPECT_EQ(*read, made);
  }
}

TEST(OverrideTextTest, RejectsInvalidText) {
  for (
      const char* text :
      {"", "7", "{}", R"({"kind":"ban"})", R"({"kind":"bann","rule":"r","key":"k"})",
       R"({"kind":"ban","rule":1,"key":"k"})", R"({"kind":"quota","rule":"r","key":"k"})",
       R"({"kind":"quota","rule":"r","key":"k","limit":"0/s","algorithm":"gcra"})",
       R"({"kind":"quota","rule":"r","key":"k","limit":"5/s","algorithm":"magic"})",
       R"({"kind":"quota","rule":"r","key":"k","limit":"5/s","algorithm":"gcra","burst":"7"})",
       R"({"kind":"quota","rule":"r","key":"k","limit":"5/s","algorithm":"fixed_window","burst":7})",
       R"({"kind":"ban","rule":"r","key":"k"} trailing)"}) {
    EXPECT_FALSE(Override::Parse(text)) << text;
  }
}

TEST(OverrideTextTest, RoundTripsFieldNames) {
  const OverrideKey key{"per-key", "client_ip=192.0.2.1"};
  EXPECT_EQ(Override::ParseField(Override::Field(key.rule, key.identity)), key);
  EXPECT_EQ(Override::ParseField("per-key"), std::nullopt);
  EXPECT_EQ(Override::ParseField(""), std::nullopt);
}

}  // namespace
}  // namespace tidegate

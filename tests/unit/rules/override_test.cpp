// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/override_table.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

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

TEST(Override, ReadsBackWhatItWrote) {
  for (int i = 0; i < kOverrideKinds; ++i) {
    const Override made = Some(static_cast<Override::Kind>(i));
    const auto read = Override::Parse(made.Text());
    ASSERT_TRUE(read) << made.Text();
    EXPECT_EQ(*read, made);
  }
}

TEST(Override, WhatMakesNoSenseIsNone) {
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

TEST(OverrideTable, EndsToTheMicrosecond) {
  ManualClock clock;
  std::vector<OverrideTable::Entry> entries(2);
  entries[0].what = Some(Override::Kind::kBan);
  entries[0].until = clock.Now() + 10s;
  entries[1].what = Some(Override::Kind::kAllow);
  entries[1].what.identity = "client_ip=192.0.2.2";
  const auto table = OverrideTable::Make(std::move(entries), clock);
  clock.Advance(10s - 1us);
  const auto* const found = table->Find("per-key", "client_ip=192.0.2.1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(table->Left(*found), 1us);
  clock.Advance(1us);
  EXPECT_EQ(table->Find("per-key", "client_ip=192.0.2.1"), nullptr);
  EXPECT_EQ(table->Left(table->entries()[0]), 0us);
  clock.Advance(24h * 365);
  ASSERT_NE(table->Find("per-key", "client_ip=192.0.2.2"), nullptr);
  EXPECT_EQ(table->Left(table->entries()[1]), std::nullopt);
  EXPECT_EQ(table->Find("other", "client_ip=192.0.2.2"), nullptr);
}

}  // namespace
}  // namespace tidegate

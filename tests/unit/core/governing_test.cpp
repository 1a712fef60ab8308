// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "core/charge.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;

/// Returns the rule that governs, of two rules with the decisions `a` and `b`.
std::string_view GoverningOf(const Decision& a, const Decision& b,
                             Mode mode_of_a = Mode::kEnforce) {
  const std::array<Charge, 2> charges{Charge{"a", "i", nullptr, 1, mode_of_a}, Charge{"b", "i"}};
  std::array<Decision, 2> decisions{a, b};
  decisions[0].rule = "a";
  decisions[1].rule = "b";
  return Governing(charges, decisions).rule;
}

TEST(GoverningDecisionTest, PrefersAnyRuleToRuleThatFailedOpen) {
  const Decision open{
      .allowed = true, .decided_by = DecidedBy::kOpen, .limit = 10, .remaining = 0, .rule = {}};
  const Decision full{
      .allowed = true, .decided_by = DecidedBy::kLocal, .limit = 10, .remaining = 10, .rule = {}};
  const Decision denied{
      .decided_by = DecidedBy::kLocal, .limit = 10, .retry_after = 1s, .rule = {}};
  EXPECT_EQ(GoverningOf(open, full), "b");
  EXPECT_EQ(GoverningOf(full, open), "a");
  EXPECT_EQ(GoverningOf(open, denied), "b");
  EXPECT_EQ(GoverningOf(open, open), "a");
  // A client must not receive the numbers of a rule that does not limit it.
  EXPECT_EQ(GoverningOf(full, open, Mode::kShadow), "b");
}

TEST(GoverningDecisionTest, PrefersRuleThatFailedClosedToAllOthers) {
  const Decision closed{
      .decided_by = DecidedBy::kClosed, .limit = 10, .retry_after = 1s, .rule = {}};
  const Decision longer{
      .decided_by = DecidedBy::kLocal, .limit = 10, .retry_after = 1h, .rule = {}};
  const Decision never{.never = true, .decided_by = DecidedBy::kLocal, .limit = 10, .rule = {}};
  const Decision open{.allowed = true, .decided_by = DecidedBy::kOpen, .rule = {}};
  for (const Decision& other : {longer, never, open}) {
    EXPECT_EQ(GoverningOf(closed, other), "a");
    EXPECT_EQ(GoverningOf(other, closed), "b");
    EXPECT_EQ(GoverningOf(closed, other, Mode::kShadow), "b")
        << "a shadow rule governs although it denies no request";
  }
}

}  // namespace
}  // namespace tidegate

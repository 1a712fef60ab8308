// SPDX-License-Identifier: Apache-2.0
// The output of the commands that change a key.
#include "cli/commands.hpp"

#include <gmock/gmock.h>

#include "cli/command_case.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ChangeCommandTest : public cli_test::CommandCase {
 protected:
  std::string Changed(Change change, const std::string& answer, KeySelector selector,
                      int status = 200) {
    return Printed(
        answer,
        [&](const ClientOptions& options) {
          return ChangeKey(
              {.change = change, .client = options, .selector = selector, .limit = "1/s"},
              console_);
        },
        status);
  }
  const KeySelector selector_{.rule = "r", .identity = "a"};
};

TEST_F(ChangeCommandTest, PrintsReplacedOverride) {
  EXPECT_EQ(Changed(Change::kBan,
                    R"({"applied":true,"rule":"r","key":"k","expires_ms":1700003600000,)"
                    R"("replaced":{"kind":"quota","limit":"50/m","by":"alice\u001b","left_ms":1,)"
                    R"("expires_ms":1700000000000}})",
                    selector_),
            "banned: r k, until 2023-11-14 23:13:20Z (replaces quota 50/m by alice\\x1b, until "
            "2023-11-14 22:13:20Z)\n");
  EXPECT_EQ(
      Changed(Change::kAllow, R"({"applied":true,"rule":"r","key":"k","replaced":{"kind":"ban"}})",
              selector_),
      "allowed without being counted: r k, until it is lifted (replaces ban; until lifted)\n");
  EXPECT_EQ(
      Changed(Change::kBan, R"({"applied":true,"rule":"r","key":"k","replaced":null})", selector_),
      "banned: r k, until it is lifted\n");
}

TEST_F(ChangeCommandTest, PrintsLiftedOverride) {
  EXPECT_EQ(Changed(Change::kLift,
                    R"({"applied":true,"rule":"r","key":"k","lifted":{"kind":"ban","by":"alice",)"
                    R"("reason":"scraping"}})",
                    selector_),
            "lifted: r k (it was ban by alice: scraping; until lifted)\n");
}

TEST_F(ChangeCommandTest, LiftsOverrideOfRemovedRuleByKey) {
  constexpr const char* kGone = R"({"detail":"there is no rule 'r'","pointer":"/rule"})";
  (void)Changed(Change::kLift, kGone, selector_, 404);
  EXPECT_EQ(exit_, kUsage);
  EXPECT_THAT(Err(), HasSubstr("there is no rule 'r' (at /rule); if the rule was removed, name the "
                               "key as `tidegate overrides` shows it: --key KEY\n"));
  (void)Changed(Change::kLift, kGone, {.rule = "r", .key = "client_ip=::1"}, 404);
  EXPECT_THAT(Err(), Not(HasSubstr("--key")))
      << "the hint suggests --key although the argument is a key";
  (void)Changed(Change::kBan, kGone, selector_, 404);
  EXPECT_THAT(Err(), Not(HasSubstr("--key")));
}

}  // namespace
}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
// What is sent for what is written on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/change.hpp"
#include "cli/explain.hpp"
#include "cli/whom.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

/// The body, or the message of the mistake.
template <class Options>
std::string Sent(const Options& options) {
  const auto question = QuestionOf(options);
  return question ? question->target + " " + json::serialize(*question->body)
                  : question.error().message;
}
std::string Sent(const Whom& whom) {
  const auto question = whom.Question();
  return question ? json::serialize(*question) : question.error().message;
}

TEST(Question, NamesAKeyInOneOfThreeWays) {
  EXPECT_EQ(Sent(Whom{.rule = "r", .identity = "a\"b"}), R"({"rule":"r","identity":"a\"b"})");
  EXPECT_EQ(Sent(Whom{.rule = "r", .key = "header:x=~k"}), R"({"rule":"r","key":"header:x=~k"})");
  EXPECT_EQ(Sent(Whom{.rule = "r", .parts = {"client_ip=::1", "header:x=a=b", "path="}}),
            R"({"rule":"r","identity":{"client_ip":"::1","header:x":"a=b","path":""}})");
}

TEST(Question, ARuleAloneIsForTheServerToJudge) {
  EXPECT_EQ(Sent(Whom{.rule = "r"}), R"({"rule":"r"})");
  ASSERT_EQ(Whom{.rule = "r"}.Hints().size(), 1u);
  EXPECT_THAT(Whom{.rule = "r"}.Hints().front().text, HasSubstr("say who is counted: IDENTITY"));
  EXPECT_TRUE((Whom{.rule = "r", .identity = "a"}.Hints().empty()));
}

TEST(Question, SaysWhatIsMissingOrTooMuch) {
  EXPECT_THAT(Sent(Whom{}), HasSubstr("which rule"));
  EXPECT_THAT(Sent(Whom{.rule = "r", .identity = "a", .key = "k"}), HasSubstr("in one way"));
  EXPECT_THAT(Sent(Whom{.rule = "r", .parts = {"client_ip"}}), HasSubstr("SOURCE=VALUE"));
  // A ban of such a key would ban nobody.
  for (const Whom& whom : {Whom{.rule = "r", .key = "client_ip=#KAU6FHk"},
                           Whom{.rule = "r", .identity = "client_ip=#KAU6FHk"},
                           Whom{.rule = "r", .parts = {"path=/", "client_ip=#KAU6FHk"}}}) {
    EXPECT_THAT(Sent(whom), HasSubstr("only a name"));
    EXPECT_THAT(Sent(whom), HasSubstr("`metrics.key_names: plain`"));
  }
  EXPECT_EQ(Sent(Whom{.rule = "r", .identity = "a=#b"}), R"({"rule":"r","identity":"a=#b"})");
  EXPECT_THAT(Sent(Whom{.rule = "r", .parts = {"a=1", "a=2"}}), HasSubstr("twice"));
}

TEST(Question, Grants) {
  EXPECT_EQ(Sent(ChangeOptions{
                .change = Change::kGrant, .whom = {.rule = "r", .identity = "a"}, .amount = "50"}),
            R"(/v1/grant {"rule":"r","identity":"a","amount":50})");
  // Without an IDENTITY the second word is the amount.
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kGrant,
                               .whom = {.rule = "r", .identity = "50", .key = "k"}}),
            R"(/v1/grant {"rule":"r","key":"k","amount":50})");
  for (const char* amount : {"", "0", "-1", "x", "1.5", "9999999999999999999"}) {
    EXPECT_THAT(
        Sent(ChangeOptions{
            .change = Change::kGrant, .whom = {.rule = "r", .identity = "a"}, .amount = amount}),
        HasSubstr("how many units"));
  }
}

TEST(Question, Changes) {
  const Whom whom{.rule = "r", .identity = "a"};
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kReset, .whom = whom}),
            R"(/v1/reset {"rule":"r","identity":"a"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kLift, .whom = whom}),
            R"(/v1/lift {"rule":"r","identity":"a"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kRefund,
                               .whom = whom,
                               .id = "o-1",
                               .cost = 3,
                               .age = std::chrono::seconds{2}}),
            R"(/v1/refund {"rule":"r","identity":"a","id":"o-1","cost":3,"age_ms":2000})");
  EXPECT_THAT(Sent(ChangeOptions{.change = Change::kRefund, .whom = whom}), HasSubstr("--id"));
  EXPECT_EQ(Sent(ChangeOptions{
                .change = Change::kBan, .whom = whom, .lasting = "1h", .reason = "scraping"}),
            R"(/v1/ban {"rule":"r","identity":"a","ttl":"1h","reason":"scraping"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kAllow, .whom = whom}),
            R"(/v1/allow {"rule":"r","identity":"a"})");
  EXPECT_EQ(
      Sent(ChangeOptions{.change = Change::kOverride, .whom = whom, .limit = "5000/s", .burst = 9}),
      R"(/v1/override {"rule":"r","identity":"a","limit":"5000/s","burst":9})");
  EXPECT_THAT(Sent(ChangeOptions{.change = Change::kOverride, .whom = whom}), HasSubstr("--limit"));
}

TEST(Question, ExplainsARequest) {
  EXPECT_EQ(
      Sent(ExplainOptions{.method = "POST",
                          .host = "h",
                          .path = "/v1/x?a=1",
                          .headers = {"X-Api-Key: abc", "a:1", "A:  2", "empty:"},
                          .client_ip = "::1",
                          .cost = 2}),
      R"(/v1/explain {"request":{"method":"POST","host":"h","path":"/v1/x","query":"a=1",)"
      R"("client_ip":"::1","headers":{"x-api-key":"abc","a":["1","2"],"empty":""}},"cost":2})");
  EXPECT_EQ(Sent(ExplainOptions{.whom = {.rule = "r", .identity = "a"}, .lease = "l"}),
            R"(/v1/explain {"rule":"r","identity":"a","lease":"l"})");
}

TEST(Question, ExplainSaysWhatIsMissing) {
  EXPECT_THAT(Sent(ExplainOptions{}), HasSubstr("describe a request"));
  EXPECT_THAT(Sent(ExplainOptions{.method = "GET"}), HasSubstr("--path is needed"));
  EXPECT_THAT(Sent(ExplainOptions{.whom = {.rule = "r", .identity = "a"}, .path = "/"}),
              HasSubstr("not both"));
  EXPECT_THAT(Sent(ExplainOptions{.path = "/", .headers = {"nocolon"}}),
              HasSubstr("'name: value'"));
}

}  // namespace
}  // namespace tidegate::cli

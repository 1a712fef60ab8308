// SPDX-License-Identifier: Apache-2.0
// The requests that the commands of the CLI send, depending on their options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

/// Returns the target and the body of the request, or the error message if the options are invalid.
template <class Options>
std::string Sent(const Options& options) {
  const auto question = RequestFor(options);
  return question ? question->target + " " + json::serialize(*question->body)
                  : question.error().message;
}
std::string Sent(const KeySelector& selector) {
  const auto question = selector.Body();
  return question ? json::serialize(*question) : question.error().message;
}

TEST(CommandRequestTest, SelectsKeyByIdentityOrKeyOrParts) {
  EXPECT_EQ(Sent(KeySelector{.rule = "r", .identity = "a\"b"}),
            R"({"rule":"r","identity":"a\"b"})");
  EXPECT_EQ(Sent(KeySelector{.rule = "r", .key = "header:x=~k"}),
            R"({"rule":"r","key":"header:x=~k"})");
  EXPECT_EQ(Sent(KeySelector{.rule = "r", .parts = {"client_ip=::1", "header:x=a=b", "path="}}),
            R"({"rule":"r","identity":{"client_ip":"::1","header:x":"a=b","path":""}})");
}

TEST(CommandRequestTest, AddsHintToRequestWithoutIdentity) {
  EXPECT_EQ(Sent(KeySelector{.rule = "r"}), R"({"rule":"r"})");
  ASSERT_EQ(KeySelector{.rule = "r"}.Hints().size(), 1u);
  EXPECT_THAT(KeySelector{.rule = "r"}.Hints().front().text,
              HasSubstr("name the identity: IDENTITY"));
  EXPECT_TRUE((KeySelector{.rule = "r", .identity = "a"}.Hints().empty()));
}

TEST(CommandRequestTest, RejectsMissingAndConflictingOptions) {
  EXPECT_THAT(Sent(KeySelector{}), HasSubstr("name the rule"));
  EXPECT_THAT(Sent(KeySelector{.rule = "r", .identity = "a", .key = "k"}), HasSubstr("in one way"));
  EXPECT_THAT(Sent(KeySelector{.rule = "r", .parts = {"client_ip"}}), HasSubstr("SOURCE=VALUE"));
  // Keys with a `#` are hashes of identities. A ban of one would have no effect.
  for (const KeySelector& selector :
       {KeySelector{.rule = "r", .key = "client_ip=#KAU6FHk"},
        KeySelector{.rule = "r", .identity = "client_ip=#KAU6FHk"},
        KeySelector{.rule = "r", .parts = {"path=/", "client_ip=#KAU6FHk"}}}) {
    EXPECT_THAT(Sent(selector), HasSubstr("has a hash instead of the address"));
    EXPECT_THAT(Sent(selector), HasSubstr("`metrics.key_names: plain`"));
  }
  EXPECT_EQ(Sent(KeySelector{.rule = "r", .identity = "a=#b"}),
            R"({"rule":"r","identity":"a=#b"})");
  EXPECT_THAT(Sent(KeySelector{.rule = "r", .parts = {"a=1", "a=2"}}), HasSubstr("twice"));
}

TEST(CommandRequestTest, BuildsGrantRequests) {
  EXPECT_EQ(
      Sent(ChangeOptions{
          .change = Change::kGrant, .selector = {.rule = "r", .identity = "a"}, .amount = "50"}),
      R"(/v1/grant {"rule":"r","identity":"a","amount":50})");
  // If a key is given with --key, the second word is the amount and not the IDENTITY.
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kGrant,
                               .selector = {.rule = "r", .identity = "50", .key = "k"}}),
            R"(/v1/grant {"rule":"r","key":"k","amount":50})");
  for (const char* amount : {"", "0", "-1", "x", "1.5", "9999999999999999999"}) {
    EXPECT_THAT(Sent(ChangeOptions{.change = Change::kGrant,
                                   .selector = {.rule = "r", .identity = "a"},
                                   .amount = amount}),
                HasSubstr("name the number of units"));
  }
}

TEST(CommandRequestTest, BuildsChangeRequests) {
  const KeySelector selector{.rule = "r", .identity = "a"};
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kReset, .selector = selector}),
            R"(/v1/reset {"rule":"r","identity":"a"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kLift, .selector = selector}),
            R"(/v1/lift {"rule":"r","identity":"a"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kRefund,
                               .selector = selector,
                               .id = "o-1",
                               .cost = 3,
                               .age = std::chrono::seconds{2}}),
            R"(/v1/refund {"rule":"r","identity":"a","id":"o-1","cost":3,"age_ms":2000})");
  EXPECT_THAT(Sent(ChangeOptions{.change = Change::kRefund, .selector = selector}),
              HasSubstr("--id"));
  EXPECT_EQ(
      Sent(ChangeOptions{
          .change = Change::kBan, .selector = selector, .duration = "1h", .reason = "scraping"}),
      R"(/v1/ban {"rule":"r","identity":"a","ttl":"1h","reason":"scraping"})");
  EXPECT_EQ(Sent(ChangeOptions{.change = Change::kAllow, .selector = selector}),
            R"(/v1/allow {"rule":"r","identity":"a"})");
  EXPECT_EQ(Sent(ChangeOptions{
                .change = Change::kOverride, .selector = selector, .limit = "5000/s", .burst = 9}),
            R"(/v1/override {"rule":"r","identity":"a","limit":"5000/s","burst":9})");
  EXPECT_THAT(Sent(ChangeOptions{.change = Change::kOverride, .selector = selector}),
              HasSubstr("--limit"));
}

TEST(CommandRequestTest, BuildsExplanationOfRequest) {
  EXPECT_EQ(
      Sent(ExplainOptions{.method = "POST",
                          .host = "h",
                          .path = "/v1/x?a=1",
                          .headers = {"X-Api-Key: abc", "a:1", "A:  2", "empty:"},
                          .client_ip = "::1",
                          .cost = 2}),
      R"(/v1/explain {"request":{"method":"POST","host":"h","path":"/v1/x","query":"a=1",)"
      R"("client_ip":"::1","headers":{"x-api-key":"abc","a":["1","2"],"empty":""}},"cost":2})");
  EXPECT_EQ(Sent(ExplainOptions{.selector = {.rule = "r", .identity = "a"}, .lease = "l"}),
            R"(/v1/explain {"rule":"r","identity":"a","lease":"l"})");
}

TEST(CommandRequestTest, RejectsIncompleteExplanation) {
  EXPECT_THAT(Sent(ExplainOptions{}), HasSubstr("describe a request"));
  EXPECT_THAT(Sent(ExplainOptions{.method = "GET"}), HasSubstr("--path is needed"));
  EXPECT_THAT(Sent(ExplainOptions{.selector = {.rule = "r", .identity = "a"}, .path = "/"}),
              HasSubstr("not both"));
  EXPECT_THAT(Sent(ExplainOptions{.path = "/", .headers = {"nocolon"}}),
              HasSubstr("'name: value'"));
}

}  // namespace
}  // namespace tidegate::cli

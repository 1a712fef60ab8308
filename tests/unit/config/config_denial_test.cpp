// SPDX-License-Identifier: Apache-2.0
// `denial`, `announce` and the other keys that determine what clients receive.
#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

std::string RuleWith(std::string_view more) {
  return "rules: [{ id: r, per: const, limit: 1/s" + std::string(more) + " }]\n";
}

std::string WithDenial(std::string_view keys) {
  return "responses:\n  denial: { " + std::string(keys) + " }\n";
}

TEST(DenialConfigTest, HasNoDenialByDefault) {
  const Config config = Good(RuleWith(""));
  EXPECT_FALSE(config.rules[0].denial);
  EXPECT_TRUE(config.rules[0].announce);
  EXPECT_FALSE(config.responses.denial);
  EXPECT_EQ(config.responses.decided_by, Config::Responses::ShowDecidedBy::kTrusted);
  EXPECT_FALSE(config.responses.partition_key);
  EXPECT_FALSE(config.api.hidden_rules);
  EXPECT_FALSE(config.exempt_preflights);
}

TEST(DenialConfigTest, ReadsDenialInRulesRoutesAndResponses) {
  const Config config = Good(
      "exempt_preflights: true\n"
      "api: { hidden_rules: true }\n"
      "responses: { decided_by: never, partition_key: true, denial: { status: 503 } }\n"
      "upstreams: { u: { targets: [\"http://127.0.0.1:9\"] } }\n"
      "listen: { gateway: \"127.0.0.1:0\" }\n"
      "routes: [{ upstream: u, denial: { link: /limits, headers: { X-A: b } } }]\n" +
      RuleWith(", announce: false, denial: { content_type: text/html, body: \"<p>{rule}</p>\" }"));
  EXPECT_TRUE(config.exempt_preflights);
  EXPECT_TRUE(config.api.hidden_rules);
  EXPECT_EQ(config.responses.decided_by, Config::Responses::ShowDecidedBy::kNever);
  EXPECT_TRUE(config.responses.partition_key);
  EXPECT_EQ(config.responses.denial->status, 503);
  EXPECT_EQ(config.routes[0].denial->link, "/limits");
  EXPECT_EQ(config.routes[0].denial->headers[0], (HeaderEdits::Set{"x-a", "b"}));
  EXPECT_FALSE(config.rules[0].announce);
  EXPECT_EQ(config.rules[0].denial->content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(config.rules[0].denial->body);
}

TEST(DenialConfigTest, AddsCharsetToContentType) {
  const auto type = [](std::string_view text) {
    return Good(WithDenial("body: '1', content_type: \"" + std::string(text) + "\""))
        .responses.denial->content_type;
  };
  EXPECT_EQ(type("text/html"), "text/html; charset=utf-8");
  EXPECT_EQ(type("text/plain ;charset=UTF-8"), "text/plain; charset=utf-8");
  EXPECT_EQ(type("application/xml"), "application/xml; charset=utf-8");
  EXPECT_EQ(type("application/json"), "application/json");
}

using DenialBodyFileTest = ConfigFolder;

TEST_F(DenialBodyFileTest, ReadsDenialBodyFromFile) {
  Write("denied.html", "<p>{retry_after}</p>\n");
  const Config config =
      Good(WithDenial("content_type: text/html, body: \"file:denied.html\""), folder_);
  struct Text {
    std::string text;
    void operator<<(std::string_view more) { text += more; }
  } out;
  config.responses.denial->body->Write(out, {.retry_after = 3});
  EXPECT_EQ(out.text.substr(0, 8), "<p>3</p>");
}

TEST(DenialConfigTest, ReportsInvalidSettings) {
  const BadCase cases[] = {
      {WithDenial("status: 200"), "2:21: error: responses.denial.status: should be between 400"},
      {WithDenial("status: 600"), "2:21: error: responses.denial.status: "},
      {WithDenial("body: x"), "needs a `content_type`"},
      {WithDenial("content_type: text/html"), "has a `content_type` but no `body`"},
      {WithDenial("content_type: html, body: x"), "should be a media type"},
      {WithDenial("content_type: \"text/html\\r\\nX: y\", body: x"), "should be a media type"},
      {WithDenial("content_type: text/html; charset=utf-7, body: x"),
       "but only `charset=utf-8` is allowed"},
      {WithDenial("content_type: text/css, body: \"{path}\""), "cannot be escaped"},
      {WithDenial("content_type: text/html, body: \"{ruel}\""),
       "error: responses.denial.body: `{ruel}` is not a placeholder; did you mean `rule`?"},
      {WithDenial("content_type: application/json, body: \"{path}\""), "not valid JSON"},
      {WithDenial("content_type: text/plain, body: \"file:/nonexistent/x\""),
       "error: responses.denial.body: "},
      {WithDenial("content_type: text/plain, body: \"" + std::string(65'537, 'x') + "\""),
       "has 65537 bytes, but at most"},
      {WithDenial("headers: { Retry-After: 3 }"), "cannot be set in a denial"},
      {WithDenial("headers: { RateLimit-Policy: x }"), "cannot be set in a denial"},
      {WithDenial("headers: { X-RateLimit-Status: x }"), "cannot be set in a denial"},
      {WithDenial("headers: { Cache-Control: public }"), "cannot be set in a denial"},
      {WithDenial("headers: { Content-Encoding: gzip }"), "cannot be set in a denial"},
      {WithDenial("headers: { CDN-Cache-Control: max-age=9 }"), "cannot be set in a denial"},
      {WithDenial("headers: { grpc-status: 0 }"), "cannot be set in a denial"},
      {WithDenial("status: 401"), "needs a challenge"},
      {WithDenial("headers: { Content-Type: text/html }"), "write `content_type` beside `headers`"},
      {WithDenial("headers: { Link: x }"), "write `link` beside `headers`"},
      {WithDenial("headers: { Content-Length: 3 }"), "belongs to each connection"},
      {WithDenial("headers: { X-A: \"a\\r\\nb\" }"), "line break"},
      {WithDenial("headers: { X-A: a, x-a: b }"), "is listed twice"},
      {WithDenial("link: javascript:alert(1)"), "should be a URL"},
      {WithDenial("link: //evil.example"), "should be a URL"},
      {WithDenial("link: \"https://a b\""), "should be a URL"},
      {WithDenial("link: \"https://a>\""), "should be a URL"},
      {WithDenial("stauts: 429"), "did you mean `status`?"},
      {"responses: { denial: off }\n", "1:22: error: responses.denial: "},
      {"responses: { decided_by: yes }\n", "should be `trusted`, `always` or `never`"},
      {RuleWith(", announce: maybe"), "error: rules[0].announce: "},
      {"exempt_preflights: sometimes\n", "error: exempt_preflights: "},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

}  // namespace
}  // namespace tidegate

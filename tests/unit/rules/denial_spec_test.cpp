// SPDX-License-Identifier: Apache-2.0
#include "rules/denial_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cctype>
#include <cstring>

namespace tidegate {
namespace {

using testing::HasSubstr;
using Escaping = BodyTemplate::Escaping;

constexpr std::string_view kAll =
    "{rule}|{limit}|{remaining}|{retry_after}|{request_id}|{link}|{status}|{title}|{method}|{path}";

struct Text {
  std::string text;
  void operator<<(std::string_view more) { text += more; }
};

std::string Rendered(std::string_view body, Escaping escaping, const BodyValues& values) {
  const auto parsed = BodyTemplate::Parse(std::string(body), escaping);
  if (!parsed) return "error: " + parsed.error();
  Text out;
  parsed->Write(out, values);
  return out.text;
}

BodyValues Known() {
  return {.rule = "per-key",
          .limit = 10,
          .remaining = 0,
          .retry_after = 7,
          .request_id = "id-1",
          .link = "https://example.com/limits",
          .status = 429,
          .title = "Quota exceeded",
          .method = "GET",
          .path = "/a/b"};
}

TEST(BodyTemplateTest, ReplacesEachPlaceholder) {
  EXPECT_EQ(Rendered(kAll, Escaping::kText, Known()),
            "per-key|10|0|7|id-1|https://example.com/limits|429|Quota exceeded|GET|/a/b");
  EXPECT_EQ(Rendered("{path}{path}", Escaping::kText, Known()), "/a/b/a/b");
  EXPECT_EQ(Rendered("", Escaping::kText, Known()), "");
}

TEST(BodyTemplateTest, ListsAllPlaceholdersInErrors) {
  const auto parsed = BodyTemplate::Parse("{zzzzzzzzzz}", Escaping::kText);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error(),
              HasSubstr("the placeholders are `rule`, `limit`, `remaining`, `retry_after`, "
                        "`request_id`, `link`, `status`, `title`, `method` or `path`"));
}

TEST(BodyTemplateTest, KeepsBracesThatAreNotPlaceholders) {
  for (const std::string_view body :
       {"{", "}", "{}", "{ rule }", "{Rule}", "{{", "a{b", "p { color: red }", "{\"a\":1}", "{a b}",
        "${x y}", "{rule", "rule}", "{1}"}) {
    EXPECT_EQ(Rendered(body, Escaping::kText, Known()), body);
  }
  EXPECT_EQ(Rendered("{{rule}}", Escaping::kText, Known()), "{per-key}");
}

TEST(BodyTemplateTest, FormatsUnknownNumbersByMediaType) {
  const BodyValues none{.status = 503};
  EXPECT_EQ(Rendered("[{limit},{remaining},{retry_after},{status}]", Escaping::kJson, none),
            "[null,null,null,503]");
  EXPECT_EQ(Rendered("{limit} {retry_after} {rule}.", Escaping::kText, none), "unknown unknown .");
}

TEST(BodyTemplateTest, RejectsInvalidTemplates) {
  EXPECT_THAT(Rendered("{retryafter}", Escaping::kText, {}),
              HasSubstr("`{retryafter}` is not a placeholder; did you mean `retry_after`?"));
  EXPECT_THAT(Rendered("{nothing_like_it}", Escaping::kText, {}),
              HasSubstr("the placeholders are `rule`, `limit`"));
  EXPECT_THAT(Rendered("{path}", Escaping::kNone, {}), HasSubstr("cannot be escaped"));
  EXPECT_THAT(Rendered(R"({"path":{path}})", Escaping::kJson, {}), HasSubstr("in quotes"));
  EXPECT_THAT(Rendered(R"({"limit":{limit})", Escaping::kJson, {}), HasSubstr("not valid JSON"));
  EXPECT_EQ(Rendered("a { b }", Escaping::kNone, {}), "a { b }");
}

TEST(BodyTemplateTest, SelectsEscapingByMediaType) {
  for (const std::string_view type : {"application/json", "application/problem+json",
                                      "Application/JSON; charset=utf-8", "application/x+json"}) {
    EXPECT_EQ(BodyTemplate::EscapingOf(type), Escaping::kJson) << type;
  }
  for (const std::string_view type : {"text/html", "TEXT/HTML ; charset=utf-8", "application/xml",
                                      "text/xml", "image/svg+xml", "application/xhtml+xml"}) {
    EXPECT_EQ(BodyTemplate::EscapingOf(type), Escaping::kMarkup) << type;
  }
  EXPECT_EQ(BodyTemplate::EscapingOf("text/plain"), Escaping::kText);
  for (const std::string_view type : {"text/css", "application/javascript", "text/json-like", ""}) {
    EXPECT_EQ(BodyTemplate::EscapingOf(type), Escaping::kNone) << type;
  }
}

// Every byte, alone and in pairs: the value must not end the JSON string that contains it.
TEST(BodyTemplateTest, ValuesCannotEndJsonString) {
  for (int first = 0; first < 256; ++first) {
    for (const char second : {'"', '\\', '\n', '\0', '<', '\x80', 'n', 'u'}) {
      const std::string value{static_cast<char>(first), second};
      const std::string body =
          Rendered(R"({"p":"{path}","i":"{request_id}","m":"{method}","last":1})", Escaping::kJson,
                   {.request_id = value, .method = value, .path = value});
      boost::system::error_code error;
      const boost::json::value json = boost::json::parse(body, error);
      ASSERT_FALSE(error) << body;
      ASSERT_EQ(json.as_object().size(), 4u) << body;
      ASSERT_EQ(json.at("last"), 1) << body;
      ASSERT_EQ(json.at("p"), json.at("i")) << body;
      EXPECT_EQ(body.find('<'), std::string::npos) << body;
      // The value has no byte that could end a string of a script after a page has decoded the
      // JSON.
      EXPECT_EQ(std::string_view(json.at("p").as_string()).find_first_of("\"'`()<>;\\{}"),
                std::string_view::npos)
          << body;
    }
  }
}

TEST(BodyTemplateTest, ValuesCannotAddMarkup) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string value(1, static_cast<char>(byte));
    const std::string body = Rendered("{path}", Escaping::kMarkup, {.path = value});
    if (body == value) {
      EXPECT_TRUE(std::isalnum(byte) != 0 || std::strchr("-._~/", byte) != nullptr) << byte;
      continue;
    }
    // The value has no quotes or spaces, which would end an attribute, and no backslashes, which a
    // script interprets.
    EXPECT_EQ(body.find_first_of("<>\"'`= \\\r\n\t"), std::string::npos) << body;
    EXPECT_TRUE(body.starts_with("&#") || body.starts_with('%')) << body;
  }
  EXPECT_EQ(Rendered("<a title='{path}'>", Escaping::kMarkup, {.path = "'><script>"}),
            "<a title='&#37;27&#37;3e&#37;3cscript&#37;3e'>");
}

// Browsers decode character references in attributes before they run the script in them.
TEST(BodyTemplateTest, ValuesCannotEndScriptStringInAttribute) {
  EXPECT_EQ(Rendered("<a onclick=\"go('{path}')\">", Escaping::kMarkup, {.path = "/x');alert(1)"}),
            "<a onclick=\"go('/x&#37;27&#37;29&#37;3balert&#37;281&#37;29')\">");
  EXPECT_EQ(
      Rendered("{method} {request_id}", Escaping::kText, {.request_id = "a:b/c", .method = "A'B"}),
      "A%27B a:b/c");
  // Other placeholders, such as {link}, come from the operator's configuration and are not changed.
  EXPECT_EQ(Rendered("{link}", Escaping::kText, {.link = "/limits?a='b'"}), "/limits?a='b'");
}

TEST(BodyTemplateTest, WritesNoControlCharactersIntoText) {
  EXPECT_EQ(Rendered("{path}", Escaping::kText, {.path = "/a\r\nb\x1b\xff"}), "/a%0d%0ab%1b%ff");
}

}  // namespace
}  // namespace tidegate

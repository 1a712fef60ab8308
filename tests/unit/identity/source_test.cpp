// SPDX-License-Identifier: Apache-2.0
#include "identity/source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

using testing::HasSubstr;

TEST(IdentitySourceTest, RoundTripsEveryKind) {
  for (const char* text :
       {"client_ip", "header:x-api-key", "cookie:session", "query:api_key", "path", "route",
        "method", "host", "jwt:sub", "const", "jwt:https://example.com/tenant"}) {
    const auto source = Source::Parse(text);
    ASSERT_TRUE(source) << text << ": " << source.error().message;
    EXPECT_EQ(source->Text(), text);
  }
}

TEST(IdentitySourceTest, LowercasesHeaderNamesOnly) {
  EXPECT_EQ(Source::Parse("header:X-Api-Key")->Text(), "header:x-api-key");
  EXPECT_EQ(Source::Parse("cookie:Session")->Text(), "cookie:Session");
  EXPECT_EQ(Source::Parse("query:Key")->Text(), "query:Key");
  EXPECT_EQ(Source::Parse("jwt:Sub")->Text(), "jwt:Sub");
}

TEST(IdentitySourceTest, RecognizesSourcesWithSecretValues) {
  for (const char* text : {"header:a", "cookie:a", "query:a", "jwt:a"}) {
    EXPECT_TRUE(Source::Parse(text)->IsSecret()) << text;
  }
  for (const char* text : {"client_ip", "path", "route", "method", "host", "const"}) {
    EXPECT_FALSE(Source::Parse(text)->IsSecret()) << text;
  }
}

TEST(IdentitySourceTest, SuggestsValidSourcesInErrors) {
  const struct {
    std::string text;
    const char* expected;
  } cases[] = {
      {"clientip", "did you mean `client_ip`?"},
      {"client-ip", "did you mean `client_ip`?"},
      {"Header:x", "did you mean `header`?"},
      {"ip", "did you mean `client_ip`?"},
      {"global", "did you mean `const`?"},
      {"x-api-key", "did you mean `header:x-api-key`?"},
      {"", "choose one of"},
      {"zzzzzzzz", "choose one of client_ip"},
      {"header", "needs a name, as in `header:x-api-key`"},
      {"header:", "needs a name"},
      {"cookie:", "as in `cookie:session`"},
      {"query", "as in `query:api_key`"},
      {"jwt:", "as in `jwt:sub`"},
      {"client_ip:x", "has no name"},
      {"const:all", "has no name"},
      {"header:x y", "a space"},
      {"header:x&y", "`&` is not allowed"},
      {"header:x=y", "`=` is not allowed"},
      {"query:{a}", "`{` is not allowed"},
      {"query:a%41", "`%` is not allowed"},
      {"jwt:a~b", "`~` is not allowed"},
      {std::string{"header:x\0y", 10}, "unprintable"},
      {"header:x\r\ny", "unprintable"},
      {"header:" + std::string(129, 'a'), "at most 128"},
  };
  for (const auto& [text, expected] : cases) {
    const auto source = Source::Parse(text);
    ASSERT_FALSE(source) << text;
    EXPECT_THAT(source.error().message, HasSubstr(expected)) << text;
  }
}

TEST(IdentitySourceListTest, ReadsAlternativesInOrder) {
  const auto part = Per::ParsePart("header:X-Api-Key|jwt:sub | client_ip ");
  ASSERT_TRUE(part);
  EXPECT_EQ((Per{{*part}}).Text(), "header:x-api-key | jwt:sub | client_ip");
  EXPECT_EQ((Per{{*part, {Source{Source::Kind::kPath, ""}}}}).Text(),
            "header:x-api-key | jwt:sub | client_ip, path");
}

TEST(IdentitySourceListTest, RejectsInvalidParts) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", "names nothing to count by; write `client_ip`"},
      {"|", "empty alternative"},
      {"client_ip |", "empty alternative"},
      {"client_ip || path", "empty alternative"},
      {"client_ip | client_ip", "twice"},
      {"header:A | header:a", "twice"},
      {"const | client_ip", "never counts"},
      {"client_ip | no_one", "is not a source"},
      {"header:a|header:b|header:c|header:d|header:e|header:f|header:g|header:h|header:i",
       "more than 8"},
  };
  for (const auto& [text, expected] : cases) {
    const auto part = Per::ParsePart(text);
    ASSERT_FALSE(part) << text;
    EXPECT_THAT(part.error().message, HasSubstr(expected)) << text;
  }
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
// Messages about path patterns in the syntax of other routers or of regular expressions.
#include "rules/foreign_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using testing::HasSubstr;

struct Spelling {
  const char* foreign;
  const char* write;  ///< The pattern that the message suggests; nullptr: the pattern is not
                      ///< foreign.
  bool exact = true;
};

TEST(ForeignPathTest, SuggestsEquivalentPattern) {
  const Spelling cases[] = {
      // Patterns of OpenAPI, Spring, FastAPI, Flask, Django, Express, Next.js, API Gateway, Go and
      // Rails.
      {"/users/{id}", "`/users/:id`"},
      {"/users/{user_id}/posts/{post-id}", "`/users/:user_id/posts/:post-id`"},
      {"/users/{id:[0-9]+}", "`/users/:id`"},
      {"/users/{id:[0-9/]+}/x", "`/users/:id/x`"},
      {"/users/<id>", "`/users/:id`"},
      {"/users/<int:id>", "`/users/:id`"},
      {"/files/<path:rest>", "`/files/**`"},
      {"/users/:id(\\d+)", "`/users/:id`"},
      {"/users/:id?", "`/users/:id`"},
      {"/users/:id.json", "`/users/:id`", false},
      {"/files/:rest*", "`/files/**`"},
      {"/users/[id]", "`/users/:id`"},
      {"/files/[...rest]", "`/files/**`"},
      {"/{proxy+}", "`/**`"},
      {"{proxy+}", "`/**`"},
      {"/files/{path...}", "`/files/**`"},
      {"/files/{*path}", "`/files/**`"},
      {"/files/*path", "`/files/**`"},
      // Glob patterns.
      {"/api/*", "`/api/**`, or `/api/:name` for one segment"},
      {"*", "`/**`, or `/:name` for one segment"},
      {"**", "`/**`"},
      {"/users/*/posts", "`/users/:name/posts`"},
      {"/a/**/z", "`/a/**`", false},
      {"/files/*.png", "`/files/:name`", false},
      {"/api*", "`/:name`", false},
      {"/v1/{a,b}/c", "`[/v1/a/c, /v1/b/c]`"},
      // Regular expressions.
      {"^/api/.*$", "`/api/**`"},
      {"~ ^/api/.*$", "`/api/**`"},
      {"~* ^/api", "`/api`"},
      {"/api/.+", "`/api/**`"},
      {"/api/(.*)", "`/api/**`"},
      {"/api(/.*)?", "`/api/**`"},
      {"/api(/|$)(.*)", "`/api/**`"},
      {".*", "`/**`"},
      {"/.*", "`/**`"},
      {"/v1/(a|b)", "`[/v1/a, /v1/b]`"},
      {"/v1/(?:a|b)/x", "`[/v1/a/x, /v1/b/x]`"},
      {"\\d+", "`/:id`"},
      {"/users/\\d+", "`/users/:id`"},
      {"/users/[0-9]+", "`/users/:id`"},
      {"/users/([^/]+)/posts", "`/users/:name/posts`"},
      {"/users/(?P<id>[0-9]+)", "`/users/:id`"},
      {"^/v1\\.0/users$", "`/v1.0/users`"},
      {"/users/%s", "`/users/:name`"},
      {"/a/{x}/b/.*", "`/a/:x/b/**`"},
      // Paths and patterns of this configuration.
      {"/", nullptr},
      {"/**", nullptr},
      {"/v1/**", nullptr},
      {"/users/:id/posts", nullptr},
      {"/users/:user_id/**", nullptr},
      {"/wiki/Tide_(physics)", nullptr},
      {"/c++/a+b", nullptr},
      {"/odata/$metadata", nullptr},
      {"/@scope/package", nullptr},
      {"/.well-known/acme-challenge/**", nullptr},
      {"/a%7Cb", nullptr},
      {"/v1.0/x.json", nullptr},
      {"/a/~user", nullptr},
      {"/calendar:sync", nullptr},
  };
  for (const Spelling& one : cases) {
    const auto found = ReadForeignPath(one.foreign);
    ASSERT_EQ(found.has_value(), one.write != nullptr) << one.foreign;
    if (!found) continue;
    EXPECT_EQ(found->write, one.write) << one.foreign;
    EXPECT_EQ(found->exact, one.exact) << one.foreign;
  }
}

TEST(ForeignPathTest, SuggestsOnlyAcceptedPatterns) {
  for (const char* const foreign :
       {"/users/{id}", "^/api/.*$", "/v1/(a|b)", "/[[...x]]", "}{", "^$", "\\", "/a/[", "|",
        "/:a:b", "/<>", "/{}", "/[]", "/(?", "~", "/a/^/b", "/*/*", "/**/**", "/{a,{b}}"}) {
    const auto found = ReadForeignPath(foreign);
    ASSERT_TRUE(found) << foreign;
    std::string write = found->write.substr(1, found->write.find('`', 1) - 1);
    if (!write.starts_with('[')) write.insert(0, "'").append("'");
    const auto problems = ProblemText(
        Read("rules: [ { id: a, per: const, limit: 1/s, match: { path: " + write + " } } ]\n"));
    EXPECT_EQ(problems.find("error"), std::string::npos) << foreign << ": " << problems;
  }
}

TEST(ForeignPathTest, RejectsForeignPathInEveryMatch) {
  for (const char* const yaml :
       {"rules: [ { id: a, per: const, limit: 1/s, match: { path: '/users/<id>' } } ]\n",
        "deny: [ { path: '/users/<id>' } ]\n", "exempt: [ { path: [/a, '/users/<id>'] } ]\n",
        "deny: [ { not: { path: '/users/<id>' } } ]\n",
        "routes: [ { match: { path: '/users/<id>' }, upstream: u } ]\n"}) {
    const std::string problems = ProblemText(Read(yaml));
    EXPECT_THAT(problems, HasSubstr("`/users/<id>` is not a pattern here: write `/users/:id`; "))
        << yaml;
    EXPECT_THAT(problems, HasSubstr("for these characters themselves write `/users/%3Cid%3E`"))
        << yaml;
  }
}

TEST(ForeignPathTest, WarnsAboutTrailingDollar) {
  const auto problems = [](const char* path) {
    return ProblemText(Read("deny: [ { path: '" + std::string(path) + "' } ]\n"));
  };
  EXPECT_THAT(problems("/login$"), HasSubstr("warning: deny[0].path: `/login$` ends with `$`"));
  EXPECT_THAT(problems("/login$"), HasSubstr("write `/login`"));
  EXPECT_THAT(problems("/odata/$metadata"), testing::Not(HasSubstr("ends with `$`")));
}

TEST(ForeignPathTest, RejectsUrlsAsPaths) {
  EXPECT_THAT(ProblemText(Read("deny: [ { path: 'https://api.example.com/v1/x' } ]\n")),
              HasSubstr("is a URL: write only its path, `/v1/x`, and its host under `host`"));
}

}  // namespace
}  // namespace tidegate

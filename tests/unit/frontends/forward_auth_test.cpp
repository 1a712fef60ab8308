// SPDX-License-Identifier: Apache-2.0
#include "frontends/forward_auth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  std::vector<net::HttpField> fields;
  /// The expected request as `METHOD host path?query`, or a part of the expected error message.
  std::string expected;
  std::string path = "/v1/auth";
  std::string query = {};
  std::string method = "GET";
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"traefik",
       {{"X-Forwarded-Method", "PUT"},
        {"X-Forwarded-Proto", "https"},
        {"X-Forwarded-Host", "api.example"},
        {"X-Forwarded-Uri", "/a/b?c=d?e"},
        {"X-Forwarded-For", "203.0.113.7"}},
       "PUT api.example /a/b?c=d?e"},
      {"names in any case",
       {{"x-forwarded-method", "PUT"}, {"X-FORWARDED-URI", "/a"}},
       "PUT proxy.example /a?"},
      {"nginx",
       {{"X-Original-URI", "/a?b"}, {"X-Original-Method", "POST"}},
       "POST proxy.example /a?b"},
      {"nginx with a host of a client that is none of its business",
       {{"X-Original-URI", "/a"}, {"X-Original-Method", "GET"}, {"X-Forwarded-Host", "evil"}},
       "GET proxy.example /a?"},
      {"nginx with an empty one of that kind",
       {{"X-Original-URI", "/a"}, {"X-Original-Method", "GET"}, {"X-Forwarded-Host", ""}},
       "GET proxy.example /a?"},
      {"ingress-nginx",
       {{"X-Original-URL", "https://api.example:8443/a?b"}, {"X-Original-Method", "GET"}},
       "GET api.example:8443 /a?b"},
      {"a URL without a path",
       {{"X-Original-URL", "http://api.example?b"}, {"X-Original-Method", "GET"}},
       "GET api.example /?b"},
      {"a URL in the other field",
       {{"X-Original-URI", "http://api.example/a"}, {"X-Original-Method", "GET"}},
       "GET api.example /a?"},
      {"envoy", {}, "DELETE proxy.example /a/b?c", "/v1/auth/a/b", "c", "DELETE"},
      {"envoy at the root", {}, "GET proxy.example /?", "/v1/auth/"},
      {"envoy with fields that agree",
       {{"X-Forwarded-Uri", "/a?c"}, {"X-Original-Method", "GET"}, {"X-Forwarded-Host", "evil"}},
       "GET proxy.example /a?c",
       "/v1/auth/a",
       "c"},
      {"both, and they agree",
       {{"X-Forwarded-Uri", "/a"},
        {"X-Forwarded-Method", "GET"},
        {"X-Original-URI", "/a"},
        {"X-Original-Method", "GET"}},
       "GET proxy.example /a?"},
      {"the other is a part only, and agrees",
       {{"X-Forwarded-Uri", "/a"}, {"X-Original-URI", "/a"}, {"X-Original-Method", "PUT"}},
       "PUT proxy.example /a?"},

      {"nothing", {}, "not described"},
      {"nothing with a method", {{"X-Forwarded-Method", "GET"}}, "not described"},
      {"no method", {{"X-Original-URI", "/a"}}, "not described"},
      {"one half each", {{"X-Original-URI", "/a"}, {"X-Forwarded-Method", "GET"}}, "not described"},
      {"an underscore is another field",
       {{"X_Forwarded_Uri", "/a"}, {"X_Forwarded_Method", "GET"}},
       "not described"},
      {"two URIs",
       {{"X-Forwarded-Uri", "/a"},
        {"X-Forwarded-Method", "GET"},
        {"X-Original-URI", "/b"},
        {"X-Original-Method", "GET"}},
       "smuggled"},
      {"two queries",
       {{"X-Forwarded-Uri", "/a?b"}, {"X-Original-URI", "/a"}, {"X-Original-Method", "GET"}},
       "smuggled"},
      {"two methods",
       {{"X-Forwarded-Method", "GET"}, {"X-Original-URI", "/a"}, {"X-Original-Method", "POST"}},
       "smuggled"},
      {"a URI and a URL",
       {{"X-Original-URI", "/a"}, {"X-Original-URL", "http://h/b"}, {"X-Original-Method", "GET"}},
       "smuggled"},
      {"two hosts",
       {{"X-Forwarded-Uri", "/a"},
        {"X-Forwarded-Method", "GET"},
        {"X-Forwarded-Host", "evil"},
        {"X-Original-URI", "/a"},
        {"X-Original-Method", "GET"}},
       "smuggled"},
      {"two hosts of one kind",
       {{"X-Original-URI", "/a"},
        {"X-Original-URL", "http://evil/a"},
        {"X-Original-Method", "GET"}},
       "smuggled"},
      {"envoy with a client's field", {{"X-Forwarded-Uri", "/b"}}, "smuggled", "/v1/auth/a"},
      {"envoy with a client's method", {{"X-Original-Method", "PUT"}}, "smuggled", "/v1/auth/a"},
      {"twice",
       {{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Method", "GET"}, {"x-forwarded-uri", "/a"}},
       "X-Forwarded-Uri occurs twice"},
      {"a host twice",
       {{"X-Forwarded-Uri", "/a"},
        {"X-Forwarded-Method", "GET"},
        {"X-Forwarded-Host", "a"},
        {"X-Forwarded-Host", "b"}},
       "X-Forwarded-Host occurs twice"},
      {"an empty host",
       {{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Method", "GET"}, {"X-Forwarded-Host", ""}},
       "present but empty"},
      {"a URL with an empty host",
       {{"X-Original-URL", "http:///a"}, {"X-Original-Method", "GET"}},
       "present but empty"},
      {"an empty method", {{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Method", ""}}, "not a method"},
      {"no method at all",
       {{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Method", "GET, PUT"}},
       "\"GET, PUT\" is not a method"},
  };
  return cases;
}

TEST(ForwardAuthTest, ReadsClientRequestAndRejectsContradictions) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    net::HttpHead head;
    head.method = one.method;
    head.host = "proxy.example";
    head.path = one.path;
    head.query = one.query;
    for (const net::HttpField& field : one.fields) head.fields[head.field_count++] = field;
    ClientRequest request;
    if (const auto bad = ReadClientRequest(head, request)) {
      EXPECT_EQ(bad->status, 400);
      EXPECT_THAT(bad->message, HasSubstr(one.expected));
      continue;
    }
    std::string text(request.method);
    text.append(" ")
        .append(request.host)
        .append(" ")
        .append(request.path)
        .append("?")
        .append(request.query);
    EXPECT_EQ(text, one.expected);
  }
}

TEST(ForwardAuthTest, RecognizesAuthPathAndPathsBelow) {
  EXPECT_TRUE(IsForwardAuth("/v1/auth"));
  EXPECT_TRUE(IsForwardAuth("/v1/auth/"));
  EXPECT_TRUE(IsForwardAuth("/v1/auth/a"));
  EXPECT_FALSE(IsForwardAuth("/v1/authorise"));
  EXPECT_FALSE(IsForwardAuth("/v1/aut"));
  EXPECT_FALSE(IsForwardAuth("/v1/decide"));
}

TEST(ForwardAuthTest, AcceptsOnlyTheDenyStatusParameter) {
  int status = -1;
  EXPECT_FALSE(ReadDenyStatus("", status));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(ReadDenyStatus("deny_status=403", status));
  EXPECT_EQ(status, 403);
  EXPECT_FALSE(ReadDenyStatus("deny_status=599", status));
  EXPECT_EQ(status, 599);
  for (const char* query : {"deny_status", "deny_status=", "deny_status=399", "deny_status=600",
                            "deny_status=4o3", "deny_status=403 ", "deny_status=-403",
                            "deny_status=99999999999", "deny_status=403&deny_status=403",
                            "Deny_status=403", "deny_status=403&x=1", "x", "&", "rule=demo"}) {
    const auto bad = ReadDenyStatus(query, status);
    ASSERT_TRUE(bad) << query;
    // The status is not 4xx: a proxy takes 4xx for a denial and forwards it to its client.
    EXPECT_EQ(bad->status, 500) << query;
  }
  EXPECT_THAT(ReadDenyStatus("deny_status=403&rule=demo", status)->message, HasSubstr("\"rule\""));
}

}  // namespace
}  // namespace tidegate

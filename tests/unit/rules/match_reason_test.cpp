// SPDX-License-Identifier: Apache-2.0
// The text of the reasons. match_index_test.cpp tests that they agree with the index.
#include "rules/match_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

using testing::HasSubstr;
using testing::Not;

RequestView Request() {
  RequestView request;
  request.method = "GET";
  request.host = "api.example.com";
  request.path = "/v1/users/7";
  return request;
}

TEST(MatchReasonTest, ReportsExpectedAndActualValue) {
  MatchSpec spec;
  spec.methods = {"POST", "PUT"};
  EXPECT_EQ(WhyNot(spec, Request()), "its method is POST or PUT, the request's is GET");
  spec.hosts = {"other.org"};
  EXPECT_EQ(WhyNot(spec, Request()), "its host is other.org, the request's is api.example.com");
  MatchSpec path;
  path.paths = {"/v1/users"};
  EXPECT_EQ(WhyNot(path, Request()), "its path is /v1/users, the request's is /v1/users/7");
  MatchSpec network;
  network.client_ips = {Network::Parse("10.0.0.0/8").value()};
  EXPECT_THAT(WhyNot(network, Request()), HasSubstr("is not known"));
  RequestView known = Request();
  known.client = Address::Parse("192.0.2.1").value();
  known.has_client = true;
  EXPECT_EQ(WhyNot(network, known), "its client_ip is 10.0.0.0/8, the request's is 192.0.2.1");
}

TEST(MatchReasonTest, NamesExceptionAndAlternatives) {
  MatchSpec spec;
  MatchSpec& excluded = spec.none.emplace_back();
  excluded.paths = {"/v1/users/:id"};
  EXPECT_EQ(WhyNot(spec, Request()), "it excludes path /v1/users/:id");
  excluded.hosts = {"*.example.com"};
  excluded.methods = {"GET", "HEAD"};
  EXPECT_EQ(WhyNot(spec, Request()),
            "it excludes host *.example.com, path /v1/users/:id, method GET or HEAD");
  excluded.methods = {"POST"};
  EXPECT_EQ(WhyNot(spec, Request()), "");
  spec.any.emplace_back().paths = {"/v2/**"};
  EXPECT_EQ(WhyNot(spec, Request()), "none of its alternatives matches: (path /v2/**)");
  spec.any.emplace_back().methods = {"POST"};
  EXPECT_EQ(WhyNot(spec, Request()),
            "none of its alternatives matches: (path /v2/**) or (method POST)");
  spec.any.emplace_back().methods = {"GET"};
  EXPECT_EQ(WhyNot(spec, Request()), "");
}

TEST(MatchReasonTest, HidesHeaderValuesOfExceptions) {
  MatchSpec spec;
  spec.none.emplace_back().headers = {{"x-api-key", "s3cret"}};
  const HeaderField key[] = {{"X-Api-Key", "s3cret"}};
  RequestView request = Request();
  request.headers = key;
  EXPECT_EQ(WhyNot(spec, request), "it excludes header x-api-key: (not shown)");
}

TEST(MatchReasonTest, ShortensLongLists) {
  MatchSpec spec;
  for (int i = 0; i < 100; ++i) spec.methods.push_back("M" + std::to_string(i));
  EXPECT_THAT(WhyNot(spec, Request()), HasSubstr("M4 or one of 95 more, the request's is GET"));
}

TEST(MatchReasonTest, ShowsHeaderPatternOfTheConfiguration) {
  MatchSpec spec;
  spec.headers = {{"x-tier", "gold*"}};
  RequestView request = Request();
  const HeaderField other[] = {{"X-Tier", "silver"}};
  EXPECT_EQ(WhyNot(spec, request),
            "it requires the header x-tier to be gold*, and the request has none");
  request.headers = other;
  EXPECT_EQ(WhyNot(spec, request),
            "it requires the header x-tier to be gold*, and the request's is not");
  for (const char* const name : {"user-agent", "accept", "x-author", "x-keyboard", "x-client-id"}) {
    EXPECT_EQ(ShownPattern({name, "gold"}), "gold") << name;
  }
}

TEST(MatchReasonTest, HidesPatternsOfCredentials) {
  MatchSpec spec;
  spec.headers = {{"x-api-key", "s3cret"}};
  RequestView request = Request();
  const HeaderField wrong[] = {{"X-Api-Key", "other-s3cret"}};
  EXPECT_THAT(WhyNot(spec, request), HasSubstr("the request has none"));
  request.headers = wrong;
  const std::string why = WhyNot(spec, request);
  EXPECT_THAT(why, HasSubstr("x-api-key"));
  EXPECT_THAT(why, Not(HasSubstr("s3cret")));
  for (const char* const name :
       {"authorization", "proxy-authorization", "cookie", "x-apikey", "apikey", "x-auth-token",
        "x_access_token", "x-amz-security-token", "x-origin-verify", "x-hub-signature-256",
        "x-client-secret", "x-session", "x-csrf-token"}) {
    EXPECT_EQ(ShownPattern({name, "sk_live_*"}), "(not shown)") << name;
    EXPECT_EQ(ShownPattern({name, "*"}), "*") << name;
  }
}

TEST(MatchReasonTest, ShowsVariableInsteadOfItsValue) {
  EXPECT_EQ(ShownPattern({"x-edge", "s3cret", "${EDGE}"}), "${EDGE}");
  EXPECT_EQ(ShownPattern({"x-api-key", "s3cret", "${KEY}"}), "(not shown)");
}

TEST(MatchReasonTest, ShowsPathsAsWrittenWhenCaseIsIgnored) {
  MatchSpec spec;
  spec.paths = {"/V1/Login"};
  IgnorePathCase(spec);
  EXPECT_EQ(WhyNot(spec, Request()), "its path is /V1/Login, the request's is /v1/users/7");
}

TEST(MatchReasonTest, EscapesTextOfTheRequest) {
  MatchSpec spec;
  spec.methods = {"GET"};
  RequestView request = Request();
  request.method = "G\x1b[31m\nET";
  EXPECT_THAT(WhyNot(spec, request), HasSubstr("\\x1b[31m\\x0aET"));
}

}  // namespace
}  // namespace tidegate

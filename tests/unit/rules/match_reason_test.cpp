// SPDX-License-Identifier: Apache-2.0
// That it agrees with the index is tested beside that; here, what people read.
#include "rules/match_reason.hpp"

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

TEST(MatchReason, SaysWhatIsWantedAndWhatThereIs) {
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

TEST(MatchReason, NamesTheExceptionAndCountsTheAlternatives) {
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
  EXPECT_EQ(WhyNot(spec, Request()), "its only alternative does not match");
  spec.any.emplace_back().methods = {"POST"};
  EXPECT_EQ(WhyNot(spec, Request()), "none of its 2 alternatives matches");
  spec.any.emplace_back().methods = {"GET"};
  EXPECT_EQ(WhyNot(spec, Request()), "");
}

TEST(MatchReason, HidesHeaderValuesOfExceptions) {
  MatchSpec spec;
  spec.none.emplace_back().headers = {{"x-api-key", "s3cret"}};
  const HeaderField key[] = {{"X-Api-Key", "s3cret"}};
  RequestView request = Request();
  request.headers = key;
  EXPECT_EQ(WhyNot(spec, request), "it excludes header x-api-key: (not shown)");
}

TEST(MatchReason, LongListsAreCut) {
  MatchSpec spec;
  for (int i = 0; i < 100; ++i) spec.methods.push_back("M" + std::to_string(i));
  EXPECT_THAT(WhyNot(spec, Request()), HasSubstr("M4 or one of 95 more, the request's is GET"));
}

TEST(MatchReason, NoValueOfAHeaderIsSaid) {
  MatchSpec spec;
  spec.headers = {{"x-api-key", "s3cret"}};
  RequestView request = Request();
  const HeaderField wrong[] = {{"X-Api-Key", "other-s3cret"}};
  EXPECT_THAT(WhyNot(spec, request), HasSubstr("the request has none"));
  request.headers = wrong;
  const std::string why = WhyNot(spec, request);
  EXPECT_THAT(why, HasSubstr("x-api-key"));
  EXPECT_THAT(why, Not(HasSubstr("s3cret")));
  EXPECT_EQ(ShownPattern({"user-agent", "BadBot"}), "BadBot");
  EXPECT_EQ(ShownPattern({"accept", "text/*"}), "text/*");
  EXPECT_EQ(ShownPattern({"x-api-key", "sk_live_*"}), "(not shown)");
}

TEST(MatchReason, WhatCameFromOutsideCannotBreakALine) {
  MatchSpec spec;
  spec.methods = {"GET"};
  RequestView request = Request();
  request.method = "G\x1b[31m\nET";
  EXPECT_THAT(WhyNot(spec, request), HasSubstr("\\x1b[31m\\x0aET"));
}

}  // namespace
}  // namespace tidegate

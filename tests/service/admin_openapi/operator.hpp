// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "service/admin_openapi/admin_document.hpp"
#include "service/admin_openapi/response_coverage.hpp"
#include "service/fixture.hpp"

namespace tidegate::openapi_test {

/// Sends requests to the admin port of a service and records the responses in the coverage.
class Operator {
 public:
  Operator(service::Service& service, ResponseCoverage& coverage)
      : service_(service), coverage_(coverage) {}

  Reply Get(std::string_view path, int status = 200) { return Ask("get", path, {}, status); }
  Reply Post(std::string_view path, std::string_view body, int status = 200) {
    return Ask("post", path, body, status);
  }
  /// Returns a member of the response to a valid request.
  boost::json::value MemberOf(std::string_view path, std::string_view body,
                              std::string_view member) {
    const Reply reply = Post(path, body);
    const boost::json::value answer = boost::json::parse(reply.body);
    const boost::json::value* const found = answer.as_object().if_contains(member);
    EXPECT_NE(found, nullptr) << path << body << " has no " << member << ": " << reply.body;
    return found == nullptr ? boost::json::value() : *found;
  }

 private:
  Reply Ask(std::string_view method, std::string_view path, std::string_view body, int status) {
    Reply reply = AskAdmin(service_.admin(), method == "get" ? "GET" : "POST", path, body);
    EXPECT_EQ(reply.status, status) << path << body << reply.body;
    coverage_.Check(path, method, reply);
    return reply;
  }

  service::Service& service_;
  ResponseCoverage& coverage_;
};

}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "service/admin_openapi/admin_document.hpp"
#include "service/admin_openapi/witness.hpp"
#include "service/fixture.hpp"

namespace tidegate::openapi_test {

/// Sends requests to a service's admin port; the witness records the answers.
class Operator {
 public:
  Operator(service::Service& service, Witness& witness) : service_(service), witness_(witness) {}

  Reply Get(std::string_view path, int status = 200) { return Ask("get", path, {}, status); }
  Reply Post(std::string_view path, std::string_view body, int status = 200) {
    return Ask("post", path, body, status);
  }
  /// A member of the answer to a question that is understood.
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
    witness_.Check(path, method, reply);
    return reply;
  }

  service::Service& service_;
  Witness& witness_;
};

}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
#include "service/openapi/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "service/openapi/json_schema.hpp"
#include "support/files.hpp"

namespace tidegate::openapi_test {

namespace json = boost::json;
using ::testing::IsEmpty;

const json::value& Document() {
  static const json::value document = json::parse(test::ReadSourceFile("docs/openapi.json"));
  return document;
}

const json::object& Operation(std::string_view path, std::string_view method,
                              const json::value& document) {
  return document.at("paths").at(path).at(method).as_object();
}

json::value BodyOf(const Reply& reply) {
  const bool text = reply.fields.at("Content-Type").starts_with("text/");
  return text ? json::value(reply.body) : json::parse(reply.body);
}

void CheckDocumented(const Reply& reply, const json::object& operation,
                     const json::value& document) {
  const json::object& answers = operation.at("responses").as_object();
  const json::value* const found = answers.if_contains(std::to_string(reply.status));
  ASSERT_NE(found, nullptr) << "status " << reply.status << " is not documented: " << reply.body;
  const json::object& answer = Resolved(document, *found).as_object();
  const auto type = reply.fields.find("Content-Type");
  if (const json::value* const contents = answer.if_contains("content")) {
    ASSERT_NE(type, reply.fields.end());
    const json::value* const content = contents->as_object().if_contains(type->second);
    ASSERT_NE(content, nullptr) << type->second << " is not documented for " << reply.status;
    EXPECT_THAT(Mistakes(BodyOf(reply), content->at("schema"), document), IsEmpty()) << reply.body;
  } else {
    EXPECT_EQ(type, reply.fields.end());
    EXPECT_EQ(reply.body, "") << "no body is documented for " << reply.status;
  }

  const std::set<std::string> every{"Date", "Connection", "Content-Type", "Content-Length",
                                    "X-Content-Type-Options"};
  const json::value* const headers = answer.if_contains("headers");
  for (const auto& [name, value] : reply.fields) {
    if (every.contains(name)) continue;
    const json::value* const header =
        headers == nullptr ? nullptr : headers->as_object().if_contains(name);
    ASSERT_NE(header, nullptr) << name << " is not documented for " << reply.status;
    const json::value& schema = Resolved(document, *header).at("schema");
    const json::value* const kind = schema.as_object().if_contains("type");
    const bool number = kind != nullptr && *kind == "integer";
    EXPECT_THAT(Mistakes(number ? json::parse(value) : json::value(value), schema, document),
                IsEmpty())
        << name << ": " << value;
  }
}

}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
// Tests the validator itself: a validator that accepts everything would prove nothing.
#include "service/openapi/json_schema.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace tidegate::openapi_test {
namespace {

bool IsValid(std::string_view value, std::string_view schema) {
  const boost::json::value document = boost::json::parse(R"({"a":{"type":"string"}})");
  return Mistakes(boost::json::parse(value), boost::json::parse(schema), document).empty();
}

TEST(JsonSchemaTest, ChecksTypes) {
  EXPECT_TRUE(IsValid("1", R"({"type":"integer"})"));
  EXPECT_FALSE(IsValid("1.5", R"({"type":"integer"})"));
  EXPECT_FALSE(IsValid("\"1\"", R"({"type":"integer"})"));
  EXPECT_TRUE(IsValid("{}", R"({"type":"object"})"));
  EXPECT_FALSE(IsValid("[]", R"({"type":"object"})"));
  EXPECT_FALSE(IsValid("null", R"({"type":"boolean"})"));
}

TEST(JsonSchemaTest, ChecksMembers) {
  constexpr std::string_view kSchema =
      R"({"type":"object","required":["a"],"properties":{"a":{"const":1},"b":true},
          "additionalProperties":false,"dependentRequired":{"b":["a"]}})";
  EXPECT_TRUE(IsValid(R"({"a":1})", kSchema));
  EXPECT_TRUE(IsValid(R"({"a":1,"b":[]})", kSchema));
  EXPECT_FALSE(IsValid(R"({"a":2})", kSchema));
  EXPECT_FALSE(IsValid(R"({"b":2})", kSchema));
  EXPECT_FALSE(IsValid(R"({"a":1,"c":1})", kSchema));
  EXPECT_FALSE(IsValid(R"({"a":1})", R"({"additionalProperties":{"type":"string"}})"));
  EXPECT_FALSE(IsValid(R"({"b":1})", R"({"dependentRequired":{"b":["a"]}})"));
}

TEST(JsonSchemaTest, ChecksItemsAndBounds) {
  EXPECT_TRUE(IsValid(R"(["x"])", R"({"items":{"type":"string"},"minItems":1})"));
  EXPECT_FALSE(IsValid(R"(["x",1])", R"({"items":{"type":"string"}})"));
  EXPECT_FALSE(IsValid("[]", R"({"minItems":1})"));
  EXPECT_FALSE(IsValid("[1,2]", R"({"maxItems":1})"));
  EXPECT_FALSE(IsValid("0", R"({"minimum":1})"));
  EXPECT_FALSE(IsValid("2", R"({"maximum":1})"));
  EXPECT_FALSE(IsValid(R"("")", R"({"minLength":1})"));
  EXPECT_FALSE(IsValid(R"("c")", R"({"enum":["a","b"]})"));
}

TEST(JsonSchemaTest, ChecksAllOfOneOfAndReferences) {
  EXPECT_FALSE(IsValid("1", R"({"allOf":[{"minimum":0},{"minimum":2}]})"));
  EXPECT_TRUE(IsValid("1", R"({"oneOf":[{"minimum":0},{"minimum":2}]})"));
  EXPECT_FALSE(IsValid("3", R"({"oneOf":[{"minimum":0},{"minimum":2}]})"));
  EXPECT_FALSE(IsValid("-1", R"({"oneOf":[{"minimum":0},{"minimum":2}]})"));
  EXPECT_TRUE(IsValid(R"("x")", R"({"$ref":"#/a"})"));
  EXPECT_FALSE(IsValid("1", R"({"$ref":"#/a"})"));
  EXPECT_FALSE(IsValid("1", R"({"maxProperties":1})")) << "an unknown keyword must be reported";
}

}  // namespace
}  // namespace tidegate::openapi_test

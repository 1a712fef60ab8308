// SPDX-License-Identifier: Apache-2.0
// Tests ResponseCoverage itself: a coverage that reports everything as seen would prove nothing.
#include "service/admin_openapi/response_coverage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace tidegate::openapi_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kDocument = R"({
  "paths": {"/a": {"get": {"responses": {
    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
    "204": {"headers": {"Age": {"schema": {"type": "integer"}}}}}}}},
  "components": {"schemas": {
    "A": {"properties": {"kind": {"enum": ["x", "y"]}, "no": false,
                         "many": {"items": {"properties": {"b": {"type": "string"}}}},
                         "either": {"oneOf": [{"type": "null"}, {"type": "string"}]}}}}}})";

Reply Answer(std::string_view body) {
  return {200, {{"Content-Type", "application/json"}}, std::string(body)};
}

TEST(ResponseCoverageTest, RecordsResponses) {
  const boost::json::value document = boost::json::parse(kDocument);
  ResponseCoverage coverage(document);
  EXPECT_THAT(coverage.Unseen(), ElementsAre("A.either", "A.either|0", "A.either|1", "A.kind",
                                             "A.kind=\"x\"", "A.kind=\"y\"", "A.many", "A.many[].b",
                                             "GET /a 200", "GET /a 204", "GET /a 204 Age"));
  coverage.Check("/a?b=c", "get", Answer(R"({"kind":"x","many":[],"either":null})"));
  EXPECT_THAT(coverage.Unseen(), ElementsAre("A.either|1", "A.kind=\"y\"", "A.many[].b",
                                             "GET /a 204", "GET /a 204 Age"));
  coverage.Check("/a", "get", Answer(R"({"kind":"y","many":[{},{"b":""}],"either":""})"));
  EXPECT_THAT(coverage.Unseen(), ElementsAre("GET /a 204", "GET /a 204 Age"));
  coverage.Check("/a", "get", Reply{204, {}, ""});
  EXPECT_THAT(coverage.Unseen(), ElementsAre("GET /a 204 Age"));
  coverage.Check("/a", "get", Reply{204, {{"Age", "1"}}, ""});
  EXPECT_THAT(coverage.Unseen(), IsEmpty());
}

}  // namespace
}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
// Checks that the OpenAPI document has exactly the paths, methods and request members of the admin
// port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "admin/admin_frontend.hpp"
#include "service/admin_openapi/operator.hpp"
#include "service/openapi/document.hpp"
#include "service/openapi/json_schema.hpp"
#include "support/files.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using service::Service;

constexpr std::string_view kYaml = "rules: [ { id: r, per: client_ip, limit: 2/h } ]\n";

TEST(AdminOpenApiTest, DocumentIsServedWithoutAuthentication) {
  Config config = Service::ConfigOf(kYaml);
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"alice", "0123456789abcdef", TokenSpec::May::kAll}};
  const Service service(config);
  // The document is served under any Host and without a token, like the document of the API.
  const Reply reply =
      Exchange(service.admin(), RequestText("GET", "/openapi.json", "", "", {}, "any.example"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, test::ReadSourceFile("docs/admin-openapi.json"));
}

TEST(AdminOpenApiTest, DocumentsExactlyThePathsOfTheServer) {
  std::set<std::string> documented;
  for (const auto& path : AdminDocument().at("paths").as_object()) documented.insert(path.key());
  std::set<std::string> answered;
  for (const std::string_view path : AdminFrontend::Paths()) answered.emplace(path);
  EXPECT_EQ(documented, answered);
}

TEST(AdminOpenApiTest, DocumentsTheMethodOfEachPath) {
  const Service service(kYaml);
  for (const std::string_view path : AdminFrontend::Paths()) {
    const Reply reply = AskAdmin(service.admin(), "DELETE", path);
    ASSERT_EQ(reply.status, 405) << path;
    const json::object& methods = AdminDocument().at("paths").at(path).as_object();
    EXPECT_EQ(methods.size(), 1u) << path;
    EXPECT_TRUE(methods.contains(reply.fields.at("Allow") == "POST" ? "post" : "get")) << path;
  }
}

TEST(AdminOpenApiTest, MarksPathsWithoutAuthentication) {
  Config config = Service::ConfigOf(kYaml);
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"alice", "0123456789abcdef", TokenSpec::May::kAll}};
  const Service service(config);
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        const Reply reply = AskAdmin(service.admin(), method == "get" ? "GET" : "POST", path, "{}");
        const json::value* const security = operation.if_contains("security");
        const bool to_everybody = security != nullptr && security->as_array().empty();
        EXPECT_EQ(reply.status, to_everybody ? 200 : 401) << path;
      });
}

/// The members of each schema must be those that the service accepts. The service rejects any other
/// member as unknown, or as without meaning for this path.
TEST(AdminOpenApiTest, DocumentsExactlyTheAcceptedMembers) {
  const Service service(kYaml);
  const std::set<std::string> all{
      "rule",  "identity", "cost",      "lease",  "id",  "age_ms", "request",  "key",
      "limit", "burst",    "algorithm", "amount", "ttl", "reason", "listener", "requests"};
  const std::set<std::string> numbers{"cost", "age_ms", "burst", "amount"};
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        if (method != "post") return;
        const json::value& schema =
            Resolved(AdminDocument(),
                     operation.at("requestBody").at("content").at("application/json").at("schema"));
        EXPECT_EQ(schema.at("additionalProperties"), false) << path;
        const json::value* const properties = schema.as_object().if_contains("properties");
        const json::object documented =
            properties == nullptr ? json::object{} : properties->as_object();
        for (const std::string& member : all) {
          // Sends only this member, with a value of its type: the service checks the member before
          // it reports missing ones.
          json::object request;
          request[member] = numbers.contains(member) ? json::value(1)
                            : member == "request"    ? json::value(json::object{})
                                                     : json::value("x");
          const Reply reply = AskAdmin(service.admin(), "POST", path, json::serialize(request));
          const bool foreign = reply.body.find("has no meaning for") != std::string::npos ||
                               reply.body.find("unknown member") != std::string::npos;
          EXPECT_EQ(documented.contains(member), !foreign) << path << ' ' << member << reply.body;
        }
        for (const auto& property : documented) {
          EXPECT_TRUE(all.contains(property.key())) << path << ' ' << property.key();
        }
      });
}

}  // namespace
}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
// Scenes with rejected requests: every rejection that the document lists for a path.
#include <gtest/gtest.h>

#include "service/admin_openapi/operator.hpp"
#include "service/admin_openapi/scenes.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using service::Service;

constexpr std::string_view kRefusalYaml = "rules: [ { id: r, per: client_ip, limit: 2/h } ]\n";
constexpr std::string_view kHost = "127.0.0.1";

std::string Upper(std::string_view method) { return method == "get" ? "GET" : "POST"; }

/// A request with the method of the path and with something that makes it invalid.
struct Bad {
  std::string_view body = {};
  std::string_view fields = {};
  std::string_view host = kHost;
};

/// Sends the request to every path that documents `status`, and checks that the response has this
/// status.
void Refuse(const Service& service, ResponseCoverage& coverage, int status, const Bad& bad) {
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        if (!operation.at("responses").as_object().contains(std::to_string(status))) return;
        const Reply reply =
            Exchange(service.admin(),
                     RequestText(Upper(method), path, bad.body,
                                 method == "post" ? "application/json" : "", bad.fields, bad.host));
        EXPECT_EQ(reply.status, status) << path << reply.body;
        coverage.Check(path, method, reply);
      });
}

/// Returns a body that is valid for the path except that its rule does not exist.
std::string Unknown(std::string_view path) {
  const std::string key_body = R"({"rule":"s","identity":"192.0.2.1")";
  if (path == "/v1/grant") return key_body + R"(,"amount":1})";
  if (path == "/v1/refund") return key_body + R"(,"id":"i"})";
  if (path == "/v1/override") return key_body + R"(,"limit":"1/s"})";
  return key_body + "}";
}

}  // namespace

void BadRequests(ResponseCoverage& coverage) {
  const Service service(kRefusalYaml);
  const std::string long_field = "X-Long: " + std::string(20'000, 'x') + "\r\n";
  const std::string long_body(2u << 20, ' ');
  Refuse(service, coverage, 413, {.body = long_body});
  Refuse(service, coverage, 431, {.fields = long_field});
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        SCOPED_TRACE(path);
        const auto refused = [&](int status, const std::string& request) {
          const Reply reply = Exchange(service.admin(), request);
          EXPECT_EQ(reply.status, status) << reply.body;
          coverage.Check(path, method, reply);
        };
        refused(405, RequestText("PUT", path, "{}", "application/json", {}, kHost));
        if (method != "post") return;
        refused(400, RequestText("POST", path, "[]", "application/json", {}, kHost));
        refused(400, RequestText("POST", path, R"({"bogus":1})", "application/json", {}, kHost));
        refused(415, RequestText("POST", path, "{}", "text/plain", {}, kHost));
        refused(415, RequestText("POST", path, "{}", "", {}, kHost));
        refused(415, RequestText("POST", path, "{}", "application/json",
                                 "Content-Encoding: gzip\r\n", kHost));
        if (!operation.at("responses").as_object().contains("404")) return;
        refused(404, RequestText("POST", path, Unknown(path), "application/json", {}, kHost));
      });
}

/// Sends valid requests in which one member at a time has an unusual value. Every response must be
/// documented.
void UnusualRequests(ResponseCoverage& coverage) {
  const Service service(kRefusalYaml);
  constexpr const char* kMembers[] = {"rule",   "identity", "cost",  "lease", "id",
                                      "age_ms", "request",  "key",   "limit", "burst",
                                      "amount", "ttl",      "reason"};
  constexpr const char* kValues[] = {"null",
                                     "true",
                                     "-1",
                                     "0",
                                     "1",
                                     "1.5",
                                     "1e3",
                                     "9223372036854775808",
                                     R"("")",
                                     R"("x")",
                                     R"("1/s")",
                                     R"("1h")",
                                     R"("client_ip=192.0.2.1")",
                                     R"("\u0000")",
                                     "[]",
                                     "{}",
                                     R"({"client_ip":"192.0.2.1"})",
                                     R"({"path":"/"})",
                                     R"({"path":"\u0000","host":" "})"};
  ForEachOperation([&](const std::string& path, const std::string& method, const json::object&) {
    if (method != "post") return;
    for (const char* const member : kMembers) {
      for (const char* const value : kValues) {
        json::object request{{"rule", "r"}, {"identity", "192.0.2.1"}};
        if (path == "/v1/grant") request["amount"] = 1;
        if (path == "/v1/refund") request["id"] = "i";
        if (path == "/v1/override") request["limit"] = "1/s";
        // `key` replaces `identity`, and `request` replaces both `rule` and `identity`.
        const std::string_view name = member;
        if (name == "key" || name == "request") request.erase("identity");
        if (name == "request") request.erase("rule");
        request[member] = json::parse(value);
        SCOPED_TRACE(json::serialize(request));
        coverage.Check(path, method,
                       AskAdmin(service.admin(), "POST", path, json::serialize(request)));
      }
    }
  });
}

void BadLimits(ResponseCoverage& coverage) {
  Service service(kRefusalYaml);
  Operator op(service, coverage);
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        const json::value* const parameters = operation.if_contains("parameters");
        if (parameters == nullptr) return;
        ASSERT_EQ(method, "get");
        const json::value& limit = parameters->as_array().at(0);
        ASSERT_EQ(limit.at("name"), "limit");
        const auto least = limit.at("schema").at("minimum").as_int64();
        const auto most = limit.at("schema").at("maximum").as_int64();
        const std::string target = path + "?limit=";
        op.Get(target + std::to_string(least));
        op.Get(target + std::to_string(most));
        op.Get(target + std::to_string(least - 1), 400);
        op.Get(target + std::to_string(most + 1), 400);
        op.Get(target + "many", 400);
        op.Get(path + "?bogus=1", 400);
      });
}

/// Sends wrong tokens to every path until the address is throttled.
void Guess(const Config& config, ResponseCoverage& coverage) {
  const Service service(config);
  ForEachOperation([&](const std::string& path, const std::string& method,
                       const json::object& operation) {
    if (!operation.at("responses").as_object().contains("429")) return;
    Reply reply;
    do {
      reply =
          AskAdmin(service.admin(), Upper(method), path, "{}", "Authorization: Bearer wrong\r\n");
    } while (reply.status == 401);
    EXPECT_EQ(reply.status, 429) << path << reply.body;
    coverage.Check(path, method, reply);
  });
}

void MissingCredentials(ResponseCoverage& coverage) {
  {
    const Service service(kRefusalYaml);
    Refuse(service, coverage, 403, {.fields = "Sec-Fetch-Site: cross-site\r\n"});
    Refuse(service, coverage, 403, {.fields = "Origin: http://evil.example\r\n"});
  }
  Config config = Service::ConfigOf(kRefusalYaml);
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"robot", "0123456789abcdef", TokenSpec::May::kAsk}};
  Guess(config, coverage);
  // Wrong tokens that come through a trusted proxy are not throttled.
  config.client_ip.policy.trusted_proxies = {Network::Parse("127.0.0.1").value()};
  const Service service(config);
  Refuse(service, coverage, 401, {});
  Refuse(service, coverage, 401, {.fields = "Authorization: Bearer wrong\r\n"});
  const auto as_robot = [&](std::string_view method, std::string_view path, std::string_view body) {
    const Reply reply = AskAdmin(service.admin(), Upper(method), path, body,
                                 "Authorization: Bearer 0123456789abcdef\r\n");
    coverage.Check(path, method, reply);
    return reply.status;
  };
  const std::string key_body = R"({"rule":"r","identity":"192.0.2.1"})";
  EXPECT_EQ(as_robot("get", "/v1/rules", ""), 200);
  EXPECT_EQ(as_robot("get", "/v1/audit", ""), 200)
      << "the audit log, which contains the failures above";
  EXPECT_EQ(as_robot("post", "/v1/explain", key_body), 200);
  EXPECT_EQ(as_robot("post", "/v1/inspect", key_body), 200);
  for (const char* const path : {"/v1/reset", "/v1/grant", "/v1/refund", "/v1/ban", "/v1/allow",
                                 "/v1/reload", "/v1/override", "/v1/lift"}) {
    EXPECT_EQ(as_robot("post", path, key_body), 403) << path;
  }
}

void TooManyRules(ResponseCoverage& coverage) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 33; ++i) {
    yaml += "  - { id: r" + std::to_string(i) + ", per: client_ip, limit: 2/h }\n";
  }
  Service service(yaml);
  Operator(service, coverage).Post("/v1/explain", R"({"request":{"client_ip":"192.0.2.1"}})", 500);
}

void TooManyConnections(ResponseCoverage& coverage) {
  // No connection is allowed, so the first one exceeds the limit.
  Config config = Service::ConfigOf(kRefusalYaml);
  config.limits.connections = 0;
  const Service service(config);
  const Reply reply = Exchange(service.admin(), {});
  EXPECT_EQ(reply.status, 503);
  ForEachOperation([&](const std::string& path, const std::string& method, const json::object&) {
    coverage.Check(path, method, reply);
  });
}

}  // namespace tidegate::openapi_test

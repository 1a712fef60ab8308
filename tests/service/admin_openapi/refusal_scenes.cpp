// SPDX-License-Identifier: Apache-2.0
// Rejected requests: every rejection that the document lists for a path.
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

/// A request of a path's own method, with whatever makes it a bad one.
struct Bad {
  std::string_view body = {};
  std::string_view fields = {};
  std::string_view host = kHost;
};

/// Asks every path that documents `status`.
void Refuse(const Service& service, Witness& witness, int status, const Bad& bad) {
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        if (!operation.at("responses").as_object().contains(std::to_string(status))) return;
        const Reply reply =
            Exchange(service.admin(),
                     RequestText(Upper(method), path, bad.body,
                                 method == "post" ? "application/json" : "", bad.fields, bad.host));
        EXPECT_EQ(reply.status, status) << path << reply.body;
        witness.Check(path, method, reply);
      });
}

/// The body that each path needs to come as far as the rule, which does not exist.
std::string Unknown(std::string_view path) {
  const std::string key_body = R"({"rule":"s","identity":"192.0.2.1")";
  if (path == "/v1/grant") return key_body + R"(,"amount":1})";
  if (path == "/v1/refund") return key_body + R"(,"id":"i"})";
  if (path == "/v1/override") return key_body + R"(,"limit":"1/s"})";
  return key_body + "}";
}

}  // namespace

void BadRequests(Witness& witness) {
  const Service service(kRefusalYaml);
  const std::string long_field = "X-Long: " + std::string(20'000, 'x') + "\r\n";
  const std::string long_body(2u << 20, ' ');
  Refuse(service, witness, 413, {.body = long_body});
  Refuse(service, witness, 431, {.fields = long_field});
  ForEachOperation(
      [&](const std::string& path, const std::string& method, const json::object& operation) {
        SCOPED_TRACE(path);
        const auto refused = [&](int status, const std::string& request) {
          const Reply reply = Exchange(service.admin(), request);
          EXPECT_EQ(reply.status, status) << reply.body;
          witness.Check(path, method, reply);
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

/// A question that is understood, with one member at a time as no client would send it. Whatever
/// comes of it is documented.
void OddQuestions(Witness& witness) {
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
        json::object question{{"rule", "r"}, {"identity", "192.0.2.1"}};
        if (path == "/v1/grant") question["amount"] = 1;
        if (path == "/v1/refund") question["id"] = "i";
        if (path == "/v1/override") question["limit"] = "1/s";
        // A key instead of an identity, a request instead of a rule.
        const std::string_view name = member;
        if (name == "key" || name == "request") question.erase("identity");
        if (name == "request") question.erase("rule");
        question[member] = json::parse(value);
        SCOPED_TRACE(json::serialize(question));
        witness.Check(path, method,
                      AskAdmin(service.admin(), "POST", path, json::serialize(question)));
      }
    }
  });
}

void BadLimits(Witness& witness) {
  Service service(kRefusalYaml);
  Operator op(service, witness);
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

/// Presents wrong tokens at every path until the address is throttled.
void Guess(const Config& config, Witness& witness) {
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
    witness.Check(path, method, reply);
  });
}

void MissingCredentials(Witness& witness) {
  {
    const Service service(kRefusalYaml);
    Refuse(service, witness, 403, {.fields = "Sec-Fetch-Site: cross-site\r\n"});
    Refuse(service, witness, 403, {.fields = "Origin: http://evil.example\r\n"});
  }
  Config config = Service::ConfigOf(kRefusalYaml);
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"robot", "0123456789abcdef", TokenSpec::May::kAsk}};
  Guess(config, witness);
  // Wrong tokens of a trusted proxy are not throttled.
  config.client_ip.policy.trusted_proxies = {Network::Parse("127.0.0.1").value()};
  const Service service(config);
  Refuse(service, witness, 401, {});
  Refuse(service, witness, 401, {.fields = "Authorization: Bearer wrong\r\n"});
  const auto as_robot = [&](std::string_view method, std::string_view path, std::string_view body) {
    const Reply reply = AskAdmin(service.admin(), Upper(method), path, body,
                                 "Authorization: Bearer 0123456789abcdef\r\n");
    witness.Check(path, method, reply);
    return reply.status;
  };
  const std::string key_body = R"({"rule":"r","identity":"192.0.2.1"})";
  EXPECT_EQ(as_robot("get", "/v1/rules", ""), 200);
  EXPECT_EQ(as_robot("get", "/v1/audit", ""), 200) << "with the failures above";
  EXPECT_EQ(as_robot("post", "/v1/explain", key_body), 200);
  EXPECT_EQ(as_robot("post", "/v1/inspect", key_body), 200);
  for (const char* const path : {"/v1/reset", "/v1/grant", "/v1/refund", "/v1/ban", "/v1/allow",
                                 "/v1/reload", "/v1/override", "/v1/lift"}) {
    EXPECT_EQ(as_robot("post", path, key_body), 403) << path;
  }
}

void TooManyRules(Witness& witness) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 33; ++i) {
    yaml += "  - { id: r" + std::to_string(i) + ", per: client_ip, limit: 2/h }\n";
  }
  Service service(yaml);
  Operator(service, witness).Post("/v1/explain", R"({"request":{"client_ip":"192.0.2.1"}})", 500);
}

void TooManyConnections(Witness& witness) {
  // No connection is allowed, so that the first is one too many.
  Config config = Service::ConfigOf(kRefusalYaml);
  config.limits.connections = 0;
  const Service service(config);
  const Reply reply = Exchange(service.admin(), {});
  EXPECT_EQ(reply.status, 503);
  ForEachOperation([&](const std::string& path, const std::string& method, const json::object&) {
    witness.Check(path, method, reply);
  });
}

}  // namespace tidegate::openapi_test

// SPDX-License-Identifier: Apache-2.0
// Compares docs/openapi.json with the service: every path, every example, every member. The
// examples of a request and of its response have the same name; `x-first` of a request lists the
// requests to send before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "server/server.hpp"
#include "service/openapi/client.hpp"
#include "service/openapi/document.hpp"
#include "service/openapi/json_schema.hpp"
#include "service/sandbox.hpp"
#include "support/files.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using ::testing::IsEmpty;

/// A server with the configuration of the demo on a free port; its clock stands still.
class Service {
 public:
  explicit Service(void (*change)(Config&) = nullptr) {
    ConfigReading reading = ParseConfig(test::ReadSourceFile("examples/demo.yaml"));
    Config& config = reading.config.value();
    config.listen = {.api = "127.0.0.1:0", .admin = ""};
    config.store.max_keys = 1000;
    if (change != nullptr) change(config);
    server_ = Server::Make(config,
                           {.threads = 1,
                            .clock = &clock_,
                            .version = "test",
                            .on_thread_start = service::SandboxedThread()},
                           reading.problems)
                  .value();
    server_->Start();
  }

  [[nodiscard]] Reply Send(std::string_view request) const {
    return Exchange(server_->api(), request);
  }
  [[nodiscard]] Reply Post(std::string_view path, std::string_view body) const {
    return Send(RequestText("POST", path, body));
  }
  /// REQUIRES: `change` of the constructor gave the server an admin port.
  [[nodiscard]] Reply PostAdmin(std::string_view path, std::string_view body) const {
    return Exchange(server_->admin(),
                    RequestText("POST", path, body, "application/json", {}, "127.0.0.1"));
  }

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
};

/// Calls `visit` with the path of every operation with POST.
template <class Visit>
void ForEachPost(Visit visit) {
  for (const auto& [path, item] : Document().at("paths").as_object()) {
    if (item.as_object().contains("post")) visit(std::string(path));
  }
}

TEST(OpenApiTest, ServesTheFileInDocsUnchanged) {
  const Service service;
  const Reply reply = service.Send(RequestText("GET", "/openapi.json", "", ""));
  EXPECT_EQ(reply.body, test::ReadSourceFile("docs/openapi.json"));
  CheckDocumented(reply, Operation("/openapi.json", "get"));
  EXPECT_EQ(reply.status, 200);
}

TEST(OpenApiTest, DocumentsExactlyTheApiPaths) {
  std::set<std::string> documented;
  for (const auto& path : Document().at("paths").as_object()) documented.insert(path.key());
  std::set<std::string> answered;
  for (const std::string_view path : ApiFrontend::Paths()) answered.emplace(path);
  EXPECT_EQ(documented, answered);

  const Service service;
  for (const std::string& path : documented) {
    EXPECT_NE(service.Post(path, "{}").status, 404) << path;
  }
}

// --- Examples -----------------------------------------------------------------

/// An example of a response: its value, and the status under which the document lists it.
struct Documented {
  std::string status;
  const json::value* value = nullptr;
};
Documented FindAnswer(const json::object& operation, std::string_view name) {
  Documented found;
  for (const auto& [status, answer] : operation.at("responses").as_object()) {
    const json::value& resolved = Resolved(Document(), answer);
    for (const auto& content : resolved.at("content").as_object()) {
      const json::value* const examples = content.value().as_object().if_contains("examples");
      if (examples == nullptr) continue;
      if (const json::value* const example = examples->as_object().if_contains(name)) {
        EXPECT_EQ(found.value, nullptr) << "two response examples have this name";
        found = {status, &example->at("value")};
      }
    }
  }
  return found;
}

void TryExample(const json::object& operation, const std::string& path, const std::string& name,
                const json::object& example, const json::value& schema) {
  const Service service;
  if (const json::value* const first = example.if_contains("x-first")) {
    for (const json::value& before : first->as_array()) {
      const Reply reply =
          service.Post(before.at("path").as_string(), json::serialize(before.at("value")));
      ASSERT_EQ(reply.status, 200) << json::serialize(before) << reply.body;
    }
  }
  const json::value& request = example.at("value");
  const Reply reply = service.Post(path, json::serialize(request));
  CheckDocumented(reply, operation);
  const Documented answer = FindAnswer(operation, name);
  ASSERT_NE(answer.value, nullptr)
      << "no response example has this name; response of the service: " << reply.status << ' '
      << reply.body;
  EXPECT_EQ(std::to_string(reply.status), answer.status);
  EXPECT_EQ(json::parse(reply.body), *answer.value)
      << "response of the service: " << reply.body
      << "documented: " << json::serialize(*answer.value);
  // A request that the service understands must match the schema. The schema may allow more: it
  // does not know which rules exist.
  if (reply.status != 400 && reply.status != 404) {
    EXPECT_THAT(Mistakes(request, schema, Document()), IsEmpty());
  }
}

TEST(OpenApiTest, ExamplesMatchTheService) {
  ForEachPost([](const std::string& path) {
    const json::object& operation = Operation(path, "post");
    const json::value& content = operation.at("requestBody").at("content").at("application/json");
    const json::object& examples = content.at("examples").as_object();
    EXPECT_FALSE(examples.empty()) << path;
    for (const auto& [name, example] : examples) {
      SCOPED_TRACE(path + " " + std::string(name));
      TryExample(operation, path, name, example.as_object(), content.at("schema"));
    }
  });
}

TEST(OpenApiTest, EveryResponseExampleHasARequestExample) {
  ForEachPost([](const std::string& path) {
    const json::object& operation = Operation(path, "post");
    const json::object& requests =
        operation.at("requestBody").at("content").at("application/json").at("examples").as_object();
    for (const auto& [status, answer] : operation.at("responses").as_object()) {
      for (const auto& content : Resolved(Document(), answer).at("content").as_object()) {
        const json::value* const examples = content.value().as_object().if_contains("examples");
        if (examples == nullptr) continue;
        for (const auto& example : examples->as_object()) {
          EXPECT_TRUE(requests.contains(example.key()))
              << path << ' ' << status << ' ' << example.key();
        }
      }
    }
  });
}

// --- Rejected requests ----------------------------------------------------------

/// Returns the body of one valid request for the path.
std::string ValidRequest(const std::string& path) {
  const json::object& examples = Operation(path, "post")
                                     .at("requestBody")
                                     .at("content")
                                     .at("application/json")
                                     .at("examples")
                                     .as_object();
  return json::serialize(examples.begin()->value().at("value"));
}

TEST(OpenApiTest, DocumentsErrorResponses) {
  const Service service;
  ForEachPost([&](const std::string& path) {
    SCOPED_TRACE(path);
    const json::object& operation = Operation(path, "post");
    const std::string body = ValidRequest(path);
    const auto refused = [&](int status, const std::string& request) {
      const Reply reply = service.Send(request);
      EXPECT_EQ(reply.status, status) << reply.body;
      CheckDocumented(reply, operation);
    };
    refused(400, RequestText("POST", path, "[]"));
    refused(400, RequestText("POST", path, "{}"));
    refused(405, RequestText("PUT", path, body));
    refused(413, RequestText("POST", path, std::string(2u << 20, ' ')));
    refused(415, RequestText("POST", path, body, "text/plain"));
    refused(415, RequestText("POST", path, body, "application/json", "Content-Encoding: gzip\r\n"));
    refused(431, RequestText("POST", path, body, "application/json",
                             "X-Long: " + std::string(20'000, 'x') + "\r\n"));
  });
}

TEST(OpenApiTest, RejectsUnknownMembers) {
  const Service service;
  ForEachPost([&](const std::string& path) {
    SCOPED_TRACE(path);
    const json::object& operation = Operation(path, "post");
    const json::value& schema =
        operation.at("requestBody").at("content").at("application/json").at("schema");
    json::value request = json::parse(ValidRequest(path));
    request.as_object()["bogus"] = 1;
    EXPECT_FALSE(Mistakes(request, schema, Document()).empty());
    const Reply reply = service.Post(path, json::serialize(request));
    EXPECT_EQ(reply.status, 400);
    CheckDocumented(reply, operation);
  });
}

/// The members of each schema must be those that the service accepts. The service rejects any other
/// member as unknown, or as without meaning for this path.
TEST(OpenApiTest, DocumentsExactlyTheAcceptedMembers) {
  const Service service;
  const std::set<std::string> all{"rule",    "identity", "cost",  "lease", "id",       "age_ms",
                                  "request", "key",      "limit", "burst", "algorithm"};
  ForEachPost([&](const std::string& path) {
    const json::value& schema = Resolved(Document(), Operation(path, "post")
                                                         .at("requestBody")
                                                         .at("content")
                                                         .at("application/json")
                                                         .at("schema"));
    if (path == "/v1/decide/batch") return;  // A batch contains the requests of /v1/decide.
    const json::object& documented = schema.at("properties").as_object();
    for (const std::string& member : all) {
      // Sends only this member, with a value of its type: the service checks the member before it
      // reports missing ones.
      json::object request;
      const bool number = member == "cost" || member == "age_ms" || member == "burst";
      request[member] = number                ? json::value(1)
                        : member == "request" ? json::value(json::object{})
                                              : json::value("x");
      const Reply reply = service.Post(path, json::serialize(request));
      const bool foreign = reply.body.find("has no meaning for") != std::string::npos ||
                           reply.body.find("unknown member") != std::string::npos;
      EXPECT_EQ(documented.contains(member), !foreign) << path << ' ' << member << reply.body;
    }
    for (const auto& property : documented) {
      EXPECT_TRUE(all.contains(property.key())) << path << ' ' << property.key();
    }
  });
}

TEST(OpenApiTest, DocumentsForbiddenRequests) {
  const Service service([](Config& config) {
    config.api.inline_quotas = false;
    config.deny.push_back(
        {.hosts = {}, .paths = {"/secret"}, .methods = {}, .headers = {}, .client_ips = {}});
  });
  ForEachPost([&](const std::string& path) {
    if (path == "/v1/decide/batch") return;
    SCOPED_TRACE(path);
    const json::object& operation = Operation(path, "post");
    json::object request = json::parse(ValidRequest(path)).as_object();
    request.erase("rule");
    request.erase("identity");
    request["key"] = "x";
    request["limit"] = "5/s";
    const Reply inline_quota = service.Post(path, json::serialize(request));
    EXPECT_EQ(inline_quota.status, 403) << inline_quota.body;
    CheckDocumented(inline_quota, operation);
  });
  const Reply denied = service.Post("/v1/decide", R"({"request":{"path":"/secret"}})");
  EXPECT_EQ(denied.status, 403) << denied.body;
  CheckDocumented(denied, Operation("/v1/decide", "post"));
  const Reply batch =
      service.Post("/v1/decide/batch", R"({"requests":[{"request":{"path":"/secret"}}]})");
  EXPECT_EQ(batch.status, 200) << batch.body;
  CheckDocumented(batch, Operation("/v1/decide/batch", "post"));
}

TEST(OpenApiTest, DocumentsBansAndAllowancesByOperators) {
  constexpr std::string_view kKey = R"({"rule":"demo","identity":{"client_ip":"203.0.113.7"})";
  const std::string key = std::string(kKey) + "}";
  const std::string proxied =
      "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /demo/x\r\nX-Forwarded-For: 203.0.113.7\r\n";
  const Service service([](Config& config) { config.listen.admin = "127.0.0.1:0"; });
  const auto decided = [&](int status, std::string_view reason) {
    Reply reply = service.Post("/v1/decide", key);
    EXPECT_EQ(reply.status, status) << reply.body;
    CheckDocumented(reply, Operation("/v1/decide", "post"));
    const json::value body = json::parse(reply.body);
    EXPECT_EQ(body.at("rule"), "demo");
    EXPECT_EQ(body.at("decided_by"), "operator");
    EXPECT_EQ(body.at("reason"), json::string(reason.data(), reason.size()));
    EXPECT_EQ(reply.fields.at("X-Tidegate-Decided-By"), "operator");
    const Reply batch = service.Post("/v1/decide/batch", R"({"requests":[)" + key + "]}");
    EXPECT_EQ(batch.status, 200) << batch.body;
    CheckDocumented(batch, Operation("/v1/decide/batch", "post"));
    return reply;
  };
  for (const bool ends : {false, true}) {
    const std::string ban = std::string(kKey) + (ends ? R"(,"ttl":"10s"})" : "}");
    EXPECT_EQ(service.PostAdmin("/v1/ban", ban).status, 200);
    EXPECT_EQ(decided(403, "banned").fields.contains("Retry-After"), ends);
    const Reply auth = service.Send(RequestText("GET", "/v1/auth", "", "", proxied));
    EXPECT_EQ(auth.status, 403) << auth.body;
    CheckDocumented(auth, Operation("/v1/auth", "get"));
  }
  EXPECT_EQ(service.PostAdmin("/v1/allow", key).status, 200);
  decided(200, "exempt");
}

TEST(OpenApiTest, DocumentsForwardAuthResponses) {
  const Service service([](Config& config) {
    config.deny.push_back(
        {.hosts = {}, .paths = {"/secret"}, .methods = {}, .headers = {}, .client_ips = {}});
  });
  const json::object& operation = Operation("/v1/auth", "get");
  const auto answers = [&](int status, std::string_view path, const std::string& fields) {
    const Reply reply = service.Send(RequestText("GET", path, "", "", fields));
    EXPECT_EQ(reply.status, status) << fields << reply.body;
    CheckDocumented(reply, operation);
  };
  const std::string about = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: ";
  for (int i = 0; i < 5; ++i) answers(200, "/v1/auth", about + "/demo/x\r\n");
  answers(429, "/v1/auth", about + "/demo/x\r\n");
  answers(400, "/v1/auth", "");
  answers(403, "/v1/auth", about + "/secret\r\n");
  answers(500, "/v1/auth?x", about + "/demo/x\r\n");
  answers(431, "/v1/auth", "X-Long: " + std::string(20'000, 'x') + "\r\n");
  const Service untrusting([](Config& config) { config.client_ip.policy.trusted_proxies.clear(); });
  const Reply reply = untrusting.Send(RequestText("GET", "/v1/auth", "", "", about + "/\r\n"));
  EXPECT_EQ(reply.status, 500);
  CheckDocumented(reply, operation);
}

TEST(OpenApiTest, DocumentsAuthenticationErrors) {
  const Service service([](Config& config) {
    config.listen.api.auth = ListenSpec::Auth::kRequired;
    config.access.tokens = {
        {.name = "a", .secret = "0123456789abcdef", .may = TokenSpec::May::kAsk}};
  });
  for (const char* const path : {"/v1/decide", "/v1/decide/batch", "/v1/peek", "/v1/debit",
                                 "/v1/refund", "/v1/acquire", "/v1/renew", "/v1/release"}) {
    const Reply reply = service.Post(path, "{}");
    EXPECT_EQ(reply.status, 401) << path;
    CheckDocumented(reply, Operation(path, "post"));
  }
  const Reply reply =
      service.Send(RequestText("POST", "/v1/refund", R"({"rule":"demo","identity":"a","id":"i"})",
                               "application/json", "Authorization: Bearer 0123456789abcdef\r\n"));
  EXPECT_EQ(reply.status, 403) << reply.body;
  CheckDocumented(reply, Operation("/v1/refund", "post"));
}

TEST(OpenApiTest, DocumentsTooManyConnections) {
  // No connection is allowed, so the first one exceeds the limit.
  const Service service([](Config& config) { config.limits.connections = 0; });
  const Reply reply = service.Send({});
  EXPECT_EQ(reply.status, 503);
  CheckDocumented(reply, Operation("/v1/decide", "post"));
}

}  // namespace
}  // namespace tidegate::openapi_test

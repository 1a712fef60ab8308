// SPDX-License-Identifier: Apache-2.0
// Checks the examples of the OpenAPI document and of docs/admin.md: they match their schemas, and
// the responses to POST requests are those of a server with the rules of the demo. The examples of
// a request and of its response have the same name; `x-first` of a request lists the requests to
// send before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <set>
#include <sstream>

#include "server/server.hpp"
#include "service/admin_openapi/admin_document.hpp"
#include "service/openapi/document.hpp"
#include "service/openapi/json_schema.hpp"
#include "service/sandbox.hpp"
#include "support/files.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;
using testing::IsEmpty;

/// A server with the rules of the demo on free ports. Its clock stands still and its hash key is
/// fixed, so that hashed keys are the same each time.
class Demo {
 public:
  Demo() {
    ConfigReading reading = ParseConfig(test::ReadSourceFile("examples/demo.yaml"));
    Config& config = reading.config.value();
    config.listen = {.api = "127.0.0.1:0", .admin = "127.0.0.1:0"};
    config.store.max_keys = 1000;
    config.identity.hmac_key = std::string(32, 'k');
    server_ = Server::Make(config,
                           {.threads = 1,
                            .clock = &clock_,
                            .version = "test",
                            .on_thread_start = service::SandboxedThread()},
                           reading.problems)
                  .value();
    server_->Start();
  }

  [[nodiscard]] Reply Post(std::string_view path, const json::value& request) const {
    const bool here = AdminDocument().at("paths").as_object().contains(path);
    return AskAdmin(here ? server_->admin() : server_->api(), "POST", path,
                    json::serialize(request));
  }

 private:
  ManualClock clock_;
  std::unique_ptr<Server> server_;
};

/// Calls `visit` with the status, the name and the value of every example of a response.
template <class Visit>
void ForEachAnswer(const json::object& operation, Visit visit) {
  for (const auto& [status, answer] : operation.at("responses").as_object()) {
    for (const auto& content : Resolved(AdminDocument(), answer).at("content").as_object()) {
      const json::value* const examples = content.value().as_object().if_contains("examples");
      if (examples == nullptr) continue;
      for (const auto& [name, example] : examples->as_object()) {
        visit(std::string(status), std::string(name), example.at("value"));
      }
    }
  }
}

void TryExample(const json::object& operation, const std::string& path, const std::string& name,
                const json::object& example) {
  const Demo demo;
  if (const json::value* const first = example.if_contains("x-first")) {
    for (const json::value& before : first->as_array()) {
      const Reply reply = demo.Post(before.at("path").as_string(), before.at("value"));
      ASSERT_EQ(reply.status, 200) << json::serialize(before) << reply.body;
    }
  }
  const json::value& request = example.at("value");
  const Reply reply = demo.Post(path, request);
  CheckDocumented(reply, operation, AdminDocument());
  int answers = 0;
  ForEachAnswer(
      operation, [&](const std::string& status, const std::string& of, const json::value& value) {
        if (of != name) return;
        ++answers;
        EXPECT_EQ(std::to_string(reply.status), status);
        EXPECT_EQ(json::parse(reply.body), value) << "response of the service: " << reply.body;
      });
  EXPECT_EQ(answers, 1) << "example responses with this name; response of the service: "
                        << reply.status << ' ' << reply.body;
  // A request that the service understands must match the schema. The schema may allow more: it
  // does not know which rules exist.
  if (reply.status != 400 && reply.status != 404) {
    EXPECT_THAT(
        Mistakes(request,
                 operation.at("requestBody").at("content").at("application/json").at("schema"),
                 AdminDocument()),
        IsEmpty());
  }
}

TEST(AdminOpenApiExamplesTest, ExamplesMatchResponsesOfTheServer) {
  ForEachOperation([](const std::string& path, const std::string& method,
                      const json::object& operation) {
    // The response to a reload depends on a file.
    if (method != "post" || path == "/v1/reload") return;
    const json::object& requests =
        operation.at("requestBody").at("content").at("application/json").at("examples").as_object();
    EXPECT_FALSE(requests.empty()) << path;
    for (const auto& [name, example] : requests) {
      SCOPED_TRACE(path + " " + std::string(name));
      TryExample(operation, path, std::string(name), example.as_object());
    }
    ForEachAnswer(operation,
                  [&](const std::string& status, const std::string& name, const json::value&) {
                    EXPECT_TRUE(requests.contains(name)) << path << ' ' << status << ' ' << name;
                  });
  });
}

// --- All schemas and examples of the document ------------------------------------

/// Calls `visit` with every object in `value`.
template <class Visit>
void ForEachObject(const json::value& value, const std::string& at, Visit& visit) {
  if (const json::array* const array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      ForEachObject((*array)[i], at + "/" + std::to_string(i), visit);
    }
  }
  const json::object* const object = value.if_object();
  if (object == nullptr) return;
  visit(*object, at);
  for (const auto& [name, member] : *object) {
    ForEachObject(member, at + "/" + std::string(name), visit);
  }
}

TEST(AdminOpenApiExamplesTest, ExamplesMatchTheirSchemas) {
  int found = 0;
  const auto check = [&](const json::object& content, const std::string& at) {
    const json::value* const examples = content.if_contains("examples");
    if (examples == nullptr || at.find("/requestBody/") != std::string::npos) return;
    for (const auto& [name, example] : examples->as_object()) {
      ++found;
      EXPECT_THAT(Mistakes(example.at("value"), content.at("schema"), AdminDocument()), IsEmpty())
          << at << ' ' << name;
    }
  };
  ForEachObject(AdminDocument(), "", check);
  EXPECT_GT(found, 20);
}

TEST(AdminOpenApiSchemasTest, SchemasDefineAdditionalPropertiesAndAreReferenced) {
  std::set<std::string> used;
  const auto check = [&](const json::object& object, const std::string& at) {
    if (const json::value* const reference = object.if_contains("$ref")) {
      EXPECT_NO_THROW((void)Follow(AdminDocument(), reference->as_string())) << at;
      used.emplace(reference->as_string());
    }
    const json::value* const type = object.if_contains("type");
    const bool schema = at.starts_with("/components/schemas/") && type != nullptr;
    const bool open = schema && *type == "object" && !object.contains("additionalProperties");
    EXPECT_FALSE(open) << at;
  };
  ForEachObject(AdminDocument(), "", check);
  for (const char* const kind : {"schemas", "responses", "headers"}) {
    for (const auto& [name, component] : AdminDocument().at("components").at(kind).as_object()) {
      EXPECT_TRUE(used.contains("#/components/" + std::string(kind) + "/" + std::string(name)))
          << kind << ' ' << name << " is used nowhere";
    }
  }
}

// --- docs/admin.md ---------------------------------------------------------------

/// A block of JSON in a Markdown page, and the heading above it.
struct Block {
  std::string heading;
  std::string text;
};

std::vector<Block> BlocksOf(const std::string& markdown) {
  std::vector<Block> blocks;
  std::istringstream lines(markdown);
  std::string heading;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```json";
      if (inside) blocks.push_back({heading, {}});
    } else if (inside) {
      blocks.back().text += line + "\n";
    } else if (line.starts_with("### ")) {
      heading = line.substr(4);
    }
  }
  return blocks;
}

/// Returns the schema of a response of that path; a problem document contains its own status.
const json::value& SchemaOf(const std::string& path, const std::string& method,
                            const json::value& body) {
  const json::object& object = body.as_object();
  const bool problem = object.contains("type") && object.contains("detail");
  const std::string status = problem ? std::to_string(object.at("status").as_int64()) : "200";
  const json::value& answer = Operation(path, method, AdminDocument()).at("responses").at(status);
  return Resolved(AdminDocument(), answer)
      .at("content")
      .at(problem ? "application/problem+json" : "application/json")
      .at("schema");
}

TEST(AdminDocsTest, ExamplesMatchOpenApiSchemas) {
  std::set<std::string> shown;
  for (const Block& block : BlocksOf(test::ReadSourceFile("docs/admin.md"))) {
    SCOPED_TRACE(block.heading);
    // All changes have the same response.
    const std::string request = block.heading == "Changes" ? "POST /v1/ban" : block.heading;
    const std::size_t space = request.find(' ');
    ASSERT_NE(space, std::string::npos) << "the heading does not name a request";
    const std::string path = request.substr(space + 1);
    const std::string method = request.substr(0, space) == "GET" ? "get" : "post";
    boost::system::error_code error;
    const json::value body = json::parse(block.text, error);
    ASSERT_FALSE(error) << block.text;
    EXPECT_THAT(Mistakes(body, SchemaOf(path, method, body), AdminDocument()), IsEmpty());
    shown.insert(path);
  }
  for (const char* const path : {"/v1/status", "/v1/rules", "/v1/hot", "/v1/explain", "/v1/inspect",
                                 "/v1/ban", "/v1/overrides", "/v1/audit"}) {
    EXPECT_TRUE(shown.contains(path)) << path;
  }
}

}  // namespace
}  // namespace tidegate::openapi_test

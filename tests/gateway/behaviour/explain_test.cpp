// SPDX-License-Identifier: Apache-2.0
// What an operator is told that the gateway would do, and what it then does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/admin_case.hpp"

namespace tidegate::behaviour {
namespace {

namespace json = boost::json;
using service::HttpAnswer;
using testing::HasSubstr;

HttpAnswer Explain(Gate& gate, const std::string& body) {
  return service::AskAdmin(gate.server().admin(), "/v1/explain", body);
}

/// Random rules and routes, and requests to them, all from one seed.
class History {
 public:
  History(std::uint64_t seed, const ScriptedUpstream& up)
      : random_(seed), gate_(Yaml(up.url())), client_(gate_.at()) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      gate_.Advance(Micros{Below(90'000)});
      Compare(
          One({"/a/x", "/a//x", "//a/x", "/b/y", "/b/./y", "/b/%79", "/elsewhere", "/a/../b/y"}),
          One({"k1", "k2", "bad"}));
    }
  }
  int seen[600] = {};  ///< By status.

 private:
  int Below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  std::string One(std::initializer_list<const char*> of) {
    return *(of.begin() + Below(static_cast<int>(of.size())));
  }

  std::string Yaml(const std::string& up) {
    std::string yaml =
        "routes:\n"
        "  - {id: exactly, match: {path: /a/x}, upstream: u}\n"
        "  - {id: below, match: {path: [/a/**, /b/y]}, upstream: u}\n"
        "upstreams: {u: {targets: \"" +
        up + "\"}}\ngateway: {merge_slashes: " + One({"true", "false"}) +
        "}\ndeny: [ { header: { x-key: \"bad\" } } ]\nrules:\n";
    const int count = 1 + Below(3);
    for (int i = 0; i < count; ++i) {
      yaml += "  - { id: r" + std::to_string(i) +
              ", per: " + One({"route", "[route, header:x-key]", "path", "header:x-key"}) +
              ", limit: " + std::to_string(2 + Below(5)) + One({"/s", "/3s"}) +
              ", match: " + One({"{}", "{ path: /a/x }", "{ path: /b/** }"}) + " }\n";
    }
    return yaml;
  }

  void Compare(const std::string& path, const std::string& key) {
    const std::string question =
        R"({"door":"gateway","request":{"method":"GET","host":"test","path":")" + path +
        R"(","peer":"127.0.0.1","headers":{"x-key":")" + key + "\"}}}";
    SCOPED_TRACE(question);
    const HttpAnswer explained = Explain(gate_, question);
    ASSERT_EQ(explained.status, 200) << explained.body;
    const Answer done = client_.Get(path, "x-key: " + key + "\r\n");
    SCOPED_TRACE("explained: " + explained.body + "done: " + done.head + done.body);
    const json::object said = explained.Json();
    ASSERT_EQ(said.at("status").to_number<int>(), done.status);
    ASSERT_EQ(said.at("route").is_null(), said.at("outcome") == "no_route" || IsLost(path, said));
    if (done.Has("RateLimit")) {
      const std::string rule(said.at("rule").as_string());
      for (const json::value& each : said.at("rules").as_array()) {
        if (each.at("rule").as_string() != std::string_view(rule)) continue;
        const auto left = each.at("after").at("remaining").as_int64();
        ASSERT_THAT(done.Field("RateLimit"),
                    HasSubstr("\"" + rule + "\";r=" + std::to_string(left) + ";"));
      }
    }
    ++seen[done.status];
  }
  /// Refused by the rules, and without a route besides.
  static bool IsLost(const std::string& path, const json::object& said) {
    if (said.at("status").to_number<int>() == 200) return false;
    const std::string shown(said.at("request").at("path").as_string());
    return path == "/elsewhere" || shown == "//a/x";
  }

  std::mt19937_64 random_;
  Gate gate_;
  Client client_;
};

TEST(GatewayExplain, AgreesWithWhatTheGatewayThenDoes) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  int seen[600] = {};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, up);
    history.Run(40);
    if (HasFailure()) return;
    for (std::size_t i = 0; i < std::size(seen); ++i) seen[i] += history.seen[i];
  }
  // A property of what never happens would hold, too.
  EXPECT_GT(seen[200], 200);
  EXPECT_GT(seen[403], 200);
  EXPECT_GT(seen[404], 50);
  EXPECT_GT(seen[429], 100);
}

TEST(GatewayExplain, TellsTheRouteAndCountsByIt) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: by-route, per: route, limit: 1/h}]\n"));
  const auto ask = [&](std::string_view door) {
    return Explain(gate, R"({"request":{"path":"/x"})" + std::string(door) + "}").Json();
  };
  const json::object through = ask(R"(,"door":"gateway")");
  EXPECT_TRUE(through.at("route").is_string());
  EXPECT_THAT(std::string(through.at("rules").at(0).at("key").as_string()),
              testing::StartsWith("route="));
  // The API knows no routes.
  EXPECT_FALSE(ask("").contains("route"));
  EXPECT_EQ(ask(R"(,"door":"api")"), ask(""));
}

TEST(GatewayExplain, RefusesWhatMakesNoSense) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: r, per: client_ip, limit: 1/h}]\n"));
  const auto pointer = [&](const std::string& body) {
    const HttpAnswer answer = Explain(gate, body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return std::string(answer.Json().at("pointer").as_string());
  };
  EXPECT_EQ(pointer(R"({"request":{"path":"/x"},"door":"resp"})"), "/door");
  EXPECT_EQ(pointer(R"({"rule":"r","identity":"192.0.2.1","door":"gateway"})"), "/door");
  EXPECT_EQ(pointer(R"({"request":{"method":"TRACE","path":"/x"},"door":"gateway"})"),
            "/request/method");
  service::Service plain("rules: [{id: r, per: client_ip, limit: 1/h}]\n");
  EXPECT_THAT(
      service::AskAdmin(plain, "/v1/explain", R"({"request":{"path":"/x"},"door":"gateway"})").body,
      HasSubstr("this node has no gateway"));
}

}  // namespace
}  // namespace tidegate::behaviour

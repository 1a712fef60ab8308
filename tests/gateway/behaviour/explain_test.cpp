// SPDX-License-Identifier: Apache-2.0
// The admin API's explanation of a gateway request matches what the gateway then does with that
// request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/admin_case.hpp"

namespace tidegate::behaviour {
namespace {

namespace json = boost::json;
using service::HttpResponse;
using testing::HasSubstr;

HttpResponse Explain(Gate& gate, const std::string& body) {
  return service::AskAdmin(gate.server().admin(), "/v1/explain", body);
}

/// Random rules and routes, and random requests to them. All depend on one seed only.
class History {
 public:
  History(std::uint64_t seed, const ScriptedUpstream& up)
      : random_(seed), gate_(Yaml(up.url())), client_(gate_.at()) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      gate_.Advance(Micros{Below(90'000)});
      Compare();
    }
  }
  int seen[600] = {};  ///< Number of responses by status.

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  int Below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  std::string One(std::initializer_list<const char*> of) {
    return *(of.begin() + Below(static_cast<int>(of.size())));
  }

  std::string Yaml(const std::string& up) {
    trusts_ = Below(2) == 0;
    std::string yaml =
        "routes:\n"
        "  - {id: exactly, match: {path: /a/x, method: GET}, upstream: u}\n"
        "  - {id: hosted, match: {path: /h, header: {host: \"te*\"}}, upstream: u}\n"
        "  - {id: below, match: {path: [/a/**, /b/y]}, upstream: u}\n"
        "upstreams: {u: {targets: \"" +
        up + "\"}}\ngateway: {merge_slashes: " + One({"true", "false"}) +
        "}\npaths: {ignore_case: " + One({"true", "false"}) +
        ", encoded_slashes: " + One({"reject", "match"}) +
        "}\ndeny: [ { header: { x-key: \"bad\" } } ]\nexempt: [ { path: [/free, /a/free] } ]\n";
    if (trusts_) yaml += "client_ip: { trusted_proxies: [127.0.0.0/8] }\n";
    yaml += "rules:\n";
    const int count = 1 + Below(3);
    for (int i = 0; i < count; ++i) {
      yaml += "  - { id: r" + std::to_string(i) + ", per: " +
              One({"route", "[route, header:x-key]", "path", "header:x-key", "client_ip",
                   "header:host", "method", "header:x-real-ip", "cookie:sid"}) +
              ", limit: " + std::to_string(3 + Below(6)) + One({"/s", "/3s"}) + ", match: " +
              One({"{}", "{ path: /a/x }", "{ path: /b/** }", "{ client_ip: 192.0.2.0/24 }"}) +
              One({"", "", ", cost: 'header:x-units'", ", mode: shadow"}) + " }\n";
    }
    return yaml;
  }

  void Compare() {
    const std::string method = One({"GET", "GET", "POST", "DELETE"});
    const std::string path = One({"/a/x", "/a//x", "//a/x", "/b/y", "/b/./y", "/b/%79",
                                  "/elsewhere", "/a/../b/y", "/h", "/free", "/a/free", "/a/x/",
                                  "/a/x;p", "/A/X", "/a%2Fx", "/a/..;/b/y", "/free;q", "/b/y%20"});
    Fields fields{{"x-key", One({"k1", "k2", "k3", "bad"})}};
    if (Below(4) == 0) fields.emplace_back("x-real-ip", One({"1", "2"}));
    if (Below(4) == 0) fields.emplace_back("x_key", "k9");
    if (Below(4) == 0) fields.emplace_back("connection", One({"x-key", "x-units, cookie"}));
    if (Below(3) == 0)
      fields.emplace_back("cookie", One({"sid=1", "sid=1; sid=2", "sid=2; sid=1"}));
    if (Below(3) == 0) fields.emplace_back("x-units", One({"2", "3", "z"}));
    if (Below(3) == 0) fields.emplace_back("x-forwarded-for", One({"192.0.2.1", "198.51.100.7"}));
    std::string lines;
    json::object headers;
    for (const auto& [name, value] : fields) {
      lines.append(name).append(": ").append(value).append("\r\n");
      headers[name] = value;
    }
    // If no proxy is trusted, the peer is the client, so `peer` and `client_ip` have the same
    // effect.
    const char* const who = trusts_ || Below(2) == 0 ? "peer" : "client_ip";
    const std::string request =
        json::serialize(json::object{{"listener", "gateway"},
                                     {"request", json::object{{"method", method},
                                                              {"host", "test"},
                                                              {"path", path},
                                                              {who, "127.0.0.1"},
                                                              {"headers", headers}}}});
    SCOPED_TRACE(request);
    const HttpResponse explained = Explain(gate_, request);
    const HttpResponse done =
        client_.Ask(method == "GET" ? GetText(path, lines) : RequestText(method, path, lines, ""));
    SCOPED_TRACE("explained: " + explained.body + "done: " + done.head + done.body);
    ++seen[done.status];
    if (explained.status != 200) {
      ASSERT_EQ(explained.status, done.status);
      return;
    }
    const json::object explanation = explained.Json();
    ASSERT_EQ(explanation.at("status").to_number<int>(), done.status);
    ASSERT_TRUE(explanation.at("route").is_string() || done.status != 200);
    // A shadow rule governs only if no other rule was charged. The gateway does not name it to
    // clients.
    bool shadow = false;
    for (const json::value& each : explanation.at("rules").as_array()) {
      const json::object& one = each.as_object();
      shadow |= explanation.contains("rule") && one.at("rule") == explanation.at("rule") &&
                one.contains("mode") && one.at("mode") == "shadow";
    }
    ASSERT_EQ(done.Has("RateLimit"), explanation.contains("rule") && !shadow && done.status != 403);
    if (!done.Has("RateLimit")) return;
    const std::string rule(explanation.at("rule").as_string());
    // Several values of one cookie are several charges of one rule. The charge with the least
    // remaining units governs.
    std::int64_t left = std::numeric_limits<std::int64_t>::max();
    for (const json::value& each : explanation.at("rules").as_array()) {
      if (each.at("rule").as_string() != std::string_view(rule)) continue;
      left = std::min(left, each.at("after").at("remaining").as_int64());
    }
    ASSERT_THAT(done.Field("RateLimit"),
                HasSubstr("\"" + rule + "\";r=" + std::to_string(left) + ";"));
  }

  bool trusts_ = false;
  std::mt19937_64 random_;
  Gate gate_;
  Client client_;
};

TEST(GatewayExplainTest, PredictsResponsesOfTheGateway) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  int seen[600] = {};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed, up);
    history.Run(40);
    if (HasFailure()) return;
    for (std::size_t i = 0; i < std::size(seen); ++i) seen[i] += history.seen[i];
  }
  // Each status must occur often, or the comparison above proves nothing about it.
  EXPECT_GT(seen[200], 200);
  EXPECT_GT(seen[400], 5);
  EXPECT_GT(seen[403], 100);
  EXPECT_GT(seen[404], 50);
  EXPECT_GT(seen[429], 100);
}

TEST(GatewayExplainTest, ReportsRouteOfTheRequest) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: by-route, per: route, limit: 1/h}]\n"));
  const auto ask = [&](std::string_view listener) {
    return Explain(gate,
                   R"({"request":{"path":"/x","peer":"192.0.2.1"})" + std::string(listener) + "}")
        .Json();
  };
  const json::object through = ask(R"(,"listener":"gateway")");
  EXPECT_TRUE(through.at("route").is_string());
  EXPECT_THAT(std::string(through.at("rules").at(0).at("key").as_string()),
              testing::StartsWith("route="));
  // Requests to the API have no route, so their explanation has none.
  EXPECT_FALSE(ask("").contains("route"));
  EXPECT_EQ(ask(R"(,"listener":"api")"), ask(""));
}

TEST(GatewayExplainTest, RejectsListenerThatDoesNotFitTheRequest) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: r, per: client_ip, limit: 1/h}]\n"));
  const auto pointer = [&](const std::string& body) {
    const HttpResponse answer = Explain(gate, body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return std::string(answer.Json().at("pointer").as_string());
  };
  EXPECT_EQ(pointer(R"({"request":{"path":"/x"},"listener":"resp"})"), "/listener");
  EXPECT_EQ(pointer(R"({"rule":"r","identity":"192.0.2.1","listener":"gateway"})"), "/listener");
  service::Service plain("rules: [{id: r, per: client_ip, limit: 1/h}]\n");
  EXPECT_THAT(
      service::AskAdmin(plain, "/v1/explain", R"({"request":{"path":"/x"},"listener":"gateway"})")
          .body,
      HasSubstr("this node has no gateway"));
}

/// Status of a response, and the remaining units of the only rule; empty: the rule was not charged.
struct Outcome {
  int status = 0;
  std::string left;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend void PrintTo(const Outcome& outcome, std::ostream* to) {
    *to << outcome.status << ' ' << outcome.left;
  }
};

Outcome ExplainedOutcome(Gate& gate, const std::string& request) {
  const HttpResponse answer = Explain(gate, R"({"listener":"gateway","request":)" + request + "}");
  if (answer.status != 200) return {answer.status, ""};
  const json::object explanation = answer.Json();
  Outcome outcome{explanation.at("status").to_number<int>(), ""};
  for (const json::value& rule : explanation.at("rules").as_array()) {
    if (rule.as_object().contains("after")) {
      outcome.left = std::to_string(rule.at("after").at("remaining").as_int64());
    }
  }
  return outcome;
}
Outcome ActualOutcome(Gate& gate, const std::string& path, const std::string& lines) {
  const HttpResponse done = gate.Get(path, lines);
  const std::string field(done.Field("RateLimit"));
  const std::size_t at = field.find("r=");
  return {done.status,
          at == std::string::npos ? "" : field.substr(at + 2, field.find(';', at) - at - 2)};
}

TEST(GatewayExplainTest, TreatsCostHeaderOfUntrustedPeerLikeTheGateway) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {},
                   "rules: [{id: r, per: client_ip, limit: 10/h, cost: 'header:x-units'}]\n"));
  const Outcome outcome = ExplainedOutcome(
      gate, R"({"path":"/x","host":"test","client_ip":"127.0.0.1","headers":{"x-units":"8"}})");
  EXPECT_EQ(outcome, ActualOutcome(gate, "/x", "x-units: 8\r\n"));
  EXPECT_EQ(
      ExplainedOutcome(gate, R"({"path":"/x","client_ip":"127.0.0.1","headers":{"x-units":"z"}})")
          .status,
      ActualOutcome(gate, "/x", "x-units: z\r\n").status);
}

TEST(GatewayExplainTest, MatchesHostAsHeader) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(
      "routes: [{id: a, match: {header: {host: \"te*\"}}, upstream: u}]\n"
      "upstreams: {u: {targets: \"" +
      up.url() +
      "\"}}\n"
      "rules: [{id: r, per: client_ip, limit: 10/h}]\n");
  const Outcome outcome =
      ExplainedOutcome(gate, R"({"path":"/x","host":"test","peer":"127.0.0.1"})");
  EXPECT_EQ(outcome, ActualOutcome(gate, "/x", ""));
}

TEST(GatewayExplainTest, RejectsFieldsThatGatewayRequestsCannotHave) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(Routed(up.url(), {}, "rules: [{id: r, per: client_ip, limit: 1/h}]\n"));
  const auto pointer = [&](const std::string& members, const std::string& more = "") {
    const HttpResponse answer = Explain(
        gate, R"({"listener":"gateway","request":{"path":"/x")" + members + "}" + more + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    return std::string(answer.Json().at("pointer").as_string());
  };
  const std::string who = R"(,"peer":"127.0.0.1")";
  EXPECT_EQ(pointer(who, R"(,"cost":5)"), "/cost");
  EXPECT_EQ(pointer(who, R"(,"lease":"x")"), "/lease");
  EXPECT_EQ(pointer(who + R"(,"method":"G T")"), "/request/method");
  EXPECT_EQ(pointer(who + R"(,"method":"TRACE")"), "/request/method");
  EXPECT_EQ(pointer(""), "/request");
}

TEST(GatewayExplainTest, Reports404ForExemptRequestWithoutRoute) {
  const ScriptedUpstream up(ScriptedUpstream::Ok());
  Gate gate(
      "routes: [{id: a, match: {path: /a}, upstream: u}]\n"
      "upstreams: {u: {targets: \"" +
      up.url() +
      "\"}}\nexempt: [{path: /e}]\n"
      "rules: [{id: r, per: client_ip, limit: 10/h}]\n");
  const auto explanation =
      Explain(gate, R"({"listener":"gateway","request":{"path":"/e","peer":"127.0.0.1"}})").Json();
  EXPECT_EQ(explanation.at("outcome").as_string(), "exempt");
  EXPECT_EQ(explanation.at("status").to_number<int>(), 404);
  EXPECT_TRUE(explanation.at("route").is_null());
}

}  // namespace
}  // namespace tidegate::behaviour

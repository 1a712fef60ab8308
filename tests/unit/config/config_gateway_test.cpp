// SPDX-License-Identifier: Apache-2.0
// Configuration of listen.gateway, gateway, access_log and routes; config_upstreams_test.cpp tests
// `upstreams`.
#include <filesystem>

#include "unit/config/config_folder.hpp"
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string kHead =
    "listen: { gateway: '127.0.0.1:80' }\nupstreams: { api: { targets: 'http://h' } }\n";

/// Returns a configuration with a route to `api` that has these additional lines of YAML; they
/// begin on line 5, column 5.
std::string Route(std::string_view lines) {
  return kHead + "routes:\n  - upstream: api\n    " + std::string{lines} + "\n";
}

/// Returns a configuration with several routes, one on each line, beginning on line 4, column 5.
std::string Routes(std::initializer_list<std::string_view> routes) {
  std::string yaml = kHead + "routes:\n";
  for (const std::string_view route : routes) yaml += "  - { " + std::string{route} + " }\n";
  return yaml;
}

RouteSpec GoodRoute(std::string_view lines) {
  const Config config = Good(Route(lines));
  EXPECT_THAT(config.routes, SizeIs(1));
  return config.routes.empty() ? RouteSpec{} : config.routes[0];
}

TEST(GatewayConfigTest, ReadsEveryKey) {
  const Config c = Good(R"(
listen: { gateway: "0.0.0.0:8080" }
limits: { drain_delay: 5s }
gateway:
  { body_bytes: 10MiB, merge_slashes: false, underscores: true, unknown_expect: ignore, response_header_bytes: 1MiB, response_header_count: 1000 }
access_log: stderr
upstreams: { api: { targets: "http://h" } }
routes:
  - id: users
    match: { host: A.example, path: /v1/**, method: GET, header: { x: y }, client_ip: 10.0.0.0/8 }
    upstream: api
    rewrite: { prefix: /v1, with: / }
    request_headers: { set: { X-Env: prod, a: 5 }, remove: [X-Debug, b] }
    response_headers: { set: { x-served-by: "the gate" }, remove: server }
    host: target
    response_timeout: 30s
    body_bytes: 1MiB
)");
  EXPECT_EQ(c.listen.gateway.address, "0.0.0.0:8080");
  EXPECT_EQ(c.limits.drain_delay, Micros{5s});
  EXPECT_EQ(c.gateway, (GatewaySpec{.body_bytes = 10u << 20,
                                    .merge_slashes = false,
                                    .underscores = true,
                                    .unknown_expect = GatewaySpec::UnknownExpect::kIgnore,
                                    .response_header_bytes = 1u << 20,
                                    .response_header_count = 1000}));
  EXPECT_EQ(c.access_log.path, "stderr");
  ASSERT_THAT(c.routes, SizeIs(1));
  const RouteSpec& route = c.routes[0];
  EXPECT_EQ(route.id, "users");
  EXPECT_THAT(route.match.hosts, ElementsAre("a.example"));
  EXPECT_THAT(route.match.paths, ElementsAre("/v1/**"));
  EXPECT_THAT(route.match.methods, ElementsAre("GET"));
  EXPECT_THAT(route.match.headers, ElementsAre(MatchSpec::Header{"x", "y"}));
  EXPECT_THAT(route.match.client_ips, SizeIs(1));
  EXPECT_EQ(route.upstream, "api");
  EXPECT_EQ(route.rewrite, (RouteSpec::Rewrite{"/v1", "/"}));
  EXPECT_EQ(route.request_headers,
            (HeaderEdits{{{"x-env", "prod"}, {"a", "5"}}, {"x-debug", "b"}}));
  EXPECT_EQ(route.response_headers, (HeaderEdits{{{"x-served-by", "the gate"}}, {"server"}}));
  EXPECT_EQ(route.host, RouteSpec::Host::kTarget);
  EXPECT_EQ(route.response_timeout, Micros{30s});
  EXPECT_EQ(route.body_bytes, 1u << 20);
  EXPECT_EQ(route.at, (Position{9, 5}));
}

TEST(GatewayConfigTest, HasDefaultsForAllKeysExceptUpstream) {
  const Config c = Good(kHead + "routes: [ { upstream: api } ]\n");
  EXPECT_EQ(c.gateway, GatewaySpec{});
  EXPECT_EQ(c.gateway.body_bytes, 0u);
  EXPECT_TRUE(c.gateway.merge_slashes);
  EXPECT_EQ(c.gateway.unknown_expect, GatewaySpec::UnknownExpect::kReject);
  EXPECT_EQ(c.gateway.response_header_bytes, 16u << 10);
  EXPECT_EQ(c.gateway.response_header_count, 128u);
  EXPECT_EQ(c.access_log.path, "stdout");
  EXPECT_EQ(c.limits.drain_delay, Micros{0});
  RouteSpec plain;
  plain.id = "api-1";
  plain.upstream = "api";
  plain.at = {3, 11};
  EXPECT_THAT(c.routes, ElementsAre(plain));
}

TEST(GatewayConfigTest, GatewayIsOffByDefault) {
  EXPECT_EQ(Good("rules: []\n").listen.gateway.address, "");
  EXPECT_EQ(Good("listen: { gateway: off }\nroutes: []\n").listen.gateway.address, "");
  EXPECT_EQ(GoodRoute("body_bytes: off").body_bytes, 0u);
  EXPECT_EQ(Good(Routes({"upstream: api"}) + "gateway: { body_bytes: off }\n").gateway.body_bytes,
            0u);
}

TEST(GatewayConfigTest, NamesRoutesWithoutIdByUpstreamAndPosition) {
  const Config c = Good(Routes({"upstream: api, id: api-7", "upstream: api"}));
  ASSERT_THAT(c.routes, SizeIs(2));
  EXPECT_EQ(c.routes[1].id, "api-2");
  const std::string name(64, 'u');
  const Config longest =
      Good("listen: { gateway: '127.0.0.1:80' }\nupstreams: { " + name +
           ": { targets: 'http://h' } }\nroutes: [ { upstream: " + name + " } ]\n");
  EXPECT_EQ(longest.routes[0].id, std::string(62, 'u') + "-1");
}

TEST(GatewayConfigTest, ReadsHostsOfRoutes) {
  EXPECT_EQ(GoodRoute("host: preserve").host, RouteSpec::Host::kPreserve);
  const struct {
    const char* written;
    const char* sent;
  } fixed[] = {{"API.internal", "api.internal"},
               {"api.internal:8443", "api.internal:8443"},
               {"'[::1]:80'", "[::1]:80"},
               {"10.0.0.1", "10.0.0.1"}};
  for (const auto& [written, sent] : fixed) {
    const RouteSpec route = GoodRoute("host: " + std::string{written});
    EXPECT_EQ(route.host, RouteSpec::Host::kFixed) << written;
    EXPECT_EQ(route.host_name, sent);
  }
  EXPECT_THAT(ProblemText(Read(Route("host: targt"))),
              HasSubstr("5:11: warning: routes[0].host: sends the name `targt` to upstreams; did "
                        "you mean `target`?"));
}

TEST(GatewayConfigTest, AcceptsRewritesThatFitTheMatch) {
  for (const char* path : {"/v1/**", "/v1", "/v1/users/:id", "/:version/users", "/**"}) {
    const RouteSpec route = GoodRoute("match: { path: '" + std::string{path} +
                                      "' }\n    rewrite: { prefix: /v1, with: /v2/x }");
    EXPECT_EQ(route.rewrite, (RouteSpec::Rewrite{"/v1", "/v2/x"})) << path;
  }
  EXPECT_EQ(GoodRoute("rewrite: { with: /v1, prefix: / }").rewrite,
            (RouteSpec::Rewrite{"/", "/v1"}));
}

TEST(BadGatewayConfigTest, RejectsInvalidGatewaySettings) {
  const BadCase cases[] = {
      {"listen: { gateway: 80 }\n", "1:20: error: listen.gateway: should be an address and a port"},
      {"gateway: { body_bytes: 0 }\n",
       "1:24: error: gateway.body_bytes: should be at least 1; for bodies of any length write "
       "`off`"},
      {"gateway: { body_bytes: 2048GiB }\n",
       "1:24: error: gateway.body_bytes: should be between 0 and 1024GiB"},
      {"gateway: { merge_slash: true }\n",
       "1:12: error: gateway: unknown key `merge_slash`; did you mean `merge_slashes`?"},
      {"gateway: { merge_slashes: off }\n",
       "1:27: error: gateway.merge_slashes: should be `true` or `false`"},
      {"gateway: { unknown_expect: drop }\n",
       "1:28: error: gateway.unknown_expect: should be `reject` or `ignore`, but is `drop`"},
      {"gateway: { response_header_bytes: 512 }\n",
       "1:35: error: gateway.response_header_bytes: should be between 1KiB and 1MiB"},
      {"gateway: { response_header_bytes: 2MiB }\n",
       "1:35: error: gateway.response_header_bytes: should be between 1KiB and 1MiB"},
      {"gateway: { response_header_count: 0 }\n",
       "1:35: error: gateway.response_header_count: should be between 1 and 1"},
      {"gateway: { response_header_count: 1001 }\n",
       "1:35: error: gateway.response_header_count: should be between 1 and 1"},
      {"limits: { drain_delay: 11m }\n",
       "1:24: error: limits.drain_delay: should be between 0 s and 10 m"},
      {"access_log: stdot\n",
       "1:13: error: access_log: should be `stdout`, `stderr` or `off`, but is `stdot`; did you "
       "mean `stdout`? For a file of that name write `./stdot`"},
      {"access_log: ''\n", "1:13: error: access_log: should be `stdout`, `stderr`, `off` or a"},
      {"access_log: /tmp/\n", "1:13: error: access_log: should be `stdout`, `stderr`, `off` or a"},
      {"access_log: \"/tmp/a\\nb\"\n", "1:13: error: access_log: should be `stdout`"},
      {"access_log: {}\n",
       "1:13: error: access_log: should be `stdout`, `stderr`, `off` or a file's path, but is a "
       "map"},
      {"access_log: access.log\n",
       "1:13: error: access_log: there is no folder `/nonexistent`; create it first"},
      {"access_log: /tmp\n", "1:13: error: access_log: `/tmp` is a folder; name a file in it"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadGatewayConfigTest, RejectsGatewayListenerWithoutRoutesAndRoutesWithoutListener) {
  const std::string upstreams = "upstreams: { api: { targets: 'http://h' } }\n";
  const std::string unused =
      "error: routes: have no effect without a gateway; write `gateway: 0.0.0.0:8080` under "
      "`listen`";
  ExpectProblem({upstreams + "routes: [ { upstream: api } ]\n", "2:9: " + unused});
  ExpectProblem(
      {upstreams + "routes: [ { upstream: api } ]\nlisten: { gateway: off }\n", "2:9: " + unused});
  const std::string alone = "1:20: error: listen.gateway: has no `routes`";
  ExpectProblem({"listen: { gateway: '0.0.0.0:80' }\n", alone});
  ExpectProblem({"listen: { gateway: '0.0.0.0:80' }\nroutes: []\n", alone});
  // An invalid listener is reported once.
  const std::string yaml = upstreams + "routes: [ { upstream: api } ]\nlisten: { gateway: 80 }\n";
  EXPECT_THAT(Read(yaml).problems, SizeIs(1)) << ProblemText(Read(yaml));
}

TEST(BadGatewayConfigTest, RejectsDuplicateAddresses) {
  const std::string rest =
      "routes: [ { upstream: api } ]\nupstreams: { api: { targets: 'http://h' } }\n";
  ExpectProblem({"listen: { gateway: '127.0.0.1:8081', api: '127.0.0.1:8081' }\n" + rest,
                 "1:20: error: listen.gateway: has the same address as `api`; give them different "
                 "ports"});
  ExpectProblem({"listen: { gateway: '[0::1]:5', admin: '[::1]:5' }\n" + rest,
                 "1:20: error: listen.gateway: has the same address as `admin`"});
  (void)Good("listen: { gateway: '127.0.0.1:0', admin: '127.0.0.1:0', api: '127.0.0.1:0' }\n" +
             rest);
  (void)Good("listen: { gateway: '127.0.0.2:8081', api: '127.0.0.1:8081' }\n" + rest);
}

TEST(BadGatewayConfigTest, RejectsInvalidRoutes) {
  const BadCase cases[] = {
      {kHead + "routes: {}\n", "3:9: error: routes: should be a list, but is a map"},
      {kHead + "routes: [5]\n", "3:10: error: routes[0]: should be a map with keys such as `id`"},
      {Routes({"id: a"}),
       "4:5: error: routes[0]: needs an `upstream`, which receives its requests"},
      {Routes({"upstream: apy"}),
       "4:17: error: routes[0].upstream: `apy` is not one of `upstreams`; did you mean `api`?"},
      {Routes({"upstream: api", "upstream: users"}),
       "5:17: error: routes[1].upstream: `users` is not one of `upstreams`: write `api`"},
      {"listen: { gateway: '127.0.0.1:80' }\nroutes: [ { upstream: api } ]\n",
       "2:23: error: routes[0].upstream: `api` is not one of `upstreams`: no upstreams are "
       "configured"},
      {Routes({"upstream: 'a b'"}), "4:17: error: routes[0].upstream: should have 1 to 64 of"},
      {Routes({"id: 'a b', upstream: api"}), "4:11: error: routes[0].id: should have 1 to 64 of"},
      {Routes({"id: a, upstream: api", "id: a, upstream: api"}),
       "5:11: error: routes[1].id: `a` is the id of two routes; the first is on line 4"},
      {Routes({"upstream: api", "id: api-1, upstream: api"}),
       "5:11: error: routes[1].id: `api-1` is the name of the route on line 4"},
      {Route("mach: {}"), "5:5: error: routes[0]: unknown key `mach`; did you mean `match`?"},
      {Route("match: { path: v1 }"),
       "5:20: error: routes[0].match.path: `v1` does not begin with `/`"},
      {Route("response_timeout: 0s"),
       "5:23: error: routes[0].response_timeout: should be between "
       "10 ms and 24 h, but is `0s`"},
      {Route("body_bytes: 1MB"), "5:17: error: routes[0].body_bytes: `1MB` is not a size"},
      {Route("host: 'http://h'"), "5:11: error: routes[0].host: `http://h` is not a host"},
      {Route("host: ''"), "5:11: error: routes[0].host: `` is not a host"},
      {Route("host: 'h:0'"), "5:11: error: routes[0].host: has a port that is not a number from"},
      {Route("host: 'h:'"), "5:11: error: routes[0].host: has a port that is not a number from 1"},
      {Route("host: [h]"), "5:11: error: routes[0].host: should be `preserve`, `target` or a name"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadGatewayConfigTest, RejectsInvalidRewrites) {
  const auto rewrite = [](const std::string& prefix, const std::string& with) {
    return Route("rewrite: { prefix: '" + prefix + "', with: '" + with + "' }");
  };
  const BadCase cases[] = {
      {Route("rewrite: { prefix: /v1 }"), "5:14: error: routes[0].rewrite: needs `prefix` and `wi"},
      {Route("rewrite: { with: /v1 }"), "5:14: error: routes[0].rewrite: needs `prefix` and `wit"},
      {Route("rewrite: /v1"), "5:14: error: routes[0].rewrite: should be a map with keys such as"},
      {rewrite("v1", "/"), "5:24: error: routes[0].rewrite.prefix: should be a path that begins"},
      {rewrite("/v1/", "/"),
       "5:24: error: routes[0].rewrite.prefix: paths are changed in their normal form, without a "
       "final `/`: write `/v1`"},
      {rewrite("/a/../v1", "/"), "5:24: error: routes[0].rewrite.prefix: paths are changed in "},
      {rewrite("/v1?a", "/"), "5:24: error: routes[0].rewrite.prefix: `/v1?a` is not a path"},
      {rewrite("/v1/**", "/"),
       "5:24: error: routes[0].rewrite.prefix: should be a plain path without"},
      {rewrite("/v1/:id", "/"),
       "5:24: error: routes[0].rewrite.prefix: should be a plain path without"},
      {rewrite("/v1", "//"), "5:37: error: routes[0].rewrite.with: paths are changed in their"},
      {rewrite("/v1", "/:id"), "5:37: error: routes[0].rewrite.with: should be a plain path"},
      {rewrite("/v1", "/v1"), "5:14: error: routes[0].rewrite: has the same `prefix` and `with`"},
      {Route("rewrite: { prefix: /v1, with: / }\n    match: { path: [/v1/a, /v2/**] }"),
       "5:24: error: routes[0].rewrite.prefix: no path that `/v2/**` matches begins with `/v1`, so "
       "this would never apply to it"},
      {Route(
           "rewrite: { prefix: /v1, with: / }\n    match: { any: [{ path: /v1 }, { path: /v3 }] }"),
       "5:24: error: routes[0].rewrite.prefix: no path that `/v3` matches begins with `/v1`"},
      {Route("match: { path: /v1x }\n    rewrite: { prefix: /v1, with: / }"),
       "6:24: error: routes[0].rewrite.prefix: no path that `/v1x` matches"},
      {Route("match: { path: /v1 }\n    rewrite: { prefix: /v1/users, with: / }"),
       "6:24: error: routes[0].rewrite.prefix: no path that `/v1` matches"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

TEST(BadGatewayConfigTest, RejectsEditsOfHeadersThatTheGatewayOwns) {
  for (const std::string name :
       {"connection", "Keep-Alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade", "Content-Length", "content_length"}) {
    const std::string problems =
        "` belongs to each connection, so the gateway writes it itself; remove it";
    ExpectProblem({Route("request_headers: { set: { " + name + ": x } }"), problems});
    ExpectProblem({Route("request_headers: { remove: [" + name + "] }"), problems});
    ExpectProblem({Route("response_headers: { set: { " + name + ": x } }"), problems});
    ExpectProblem({Route("response_headers: { remove: [" + name + "] }"), problems});
  }
  for (const std::string name :
       {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "forwarded",
        "via", "x-request-id", "expect", "X_Forwarded_For"}) {
    ExpectProblem(
        {Route("request_headers: { set: { " + name + ": x } }"),
         "` is written by the gateway itself, so that upstreams can trust it; remove it"});
    ExpectProblem(
        {Route("request_headers: { remove: " + name + " }"), "` is written by the gateway"});
    EXPECT_THAT(GoodRoute("response_headers: { remove: " + name + " }").response_headers.remove,
                SizeIs(1));
  }
  ExpectProblem({Route("request_headers: { set: { Host: x } }"),
                 "5:31: error: routes[0].request_headers.set.Host: `host` is set by the route's "
                 "`host`: write `host: target`, or a name"});
  ExpectProblem({Route("response_headers: { remove: [host] }"),
                 "5:34: error: routes[0].response_headers.remove[0]: `host` is a header of "
                 "requests, not of responses; remove it"});
}

TEST(BadGatewayConfigTest, RejectsInvalidHeaderEdits) {
  const BadCase cases[] = {
      {Route("request_headers: { add: { a: b } }"),
       "5:24: error: routes[0].request_headers: unknown key `add`: the keys here are `set` or "
       "`remove`"},
      {Route("request_headers: { set: { 'a b': c } }"),
       "5:31: error: routes[0].request_headers.set.*: this is not the name of a header"},
      {Route("request_headers: { set: { ':path': c } }"),
       ".:path: this is not the name of a header"},
      {Route("request_headers: { set: { a: b, A: c } }"),
       "5:37: error: routes[0].request_headers.set.A: the header `a` is listed twice"},
      {Route("request_headers: { remove: [a, A] }"),
       "5:36: error: routes[0].request_headers.remove[1]: the header `a` is listed twice"},
      {Route("request_headers: { remove: [] }"),
       "5:32: error: routes[0].request_headers.remove: names nothing to remove"},
      {Route("request_headers: { remove: [A], set: { a: b } }"),
       "5:33: error: routes[0].request_headers.remove[0]: `a` is under `set` too, which replaces "
       "all"},
      {Route("response_headers: { set: { a: b }, remove: a }"),
       "5:48: error: routes[0].response_headers.remove: `a` is under `set` too"},
      {Route("request_headers: { set: { a: } }"),
       "5:34: error: routes[0].request_headers.set.a: should be the header's value, but is empty"},
      {Route("request_headers: { set: { a: ' b' } }"),
       "5:34: error: routes[0].request_headers.set.a: begins or ends with a space"},
      {Route("request_headers: { set: { a: " + std::string(4'097, 'x') + " } }"),
       "5:34: error: routes[0].request_headers.set.a: is longer than 4,096 bytes"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
  for (const char* control : {"\\r", "\\n", "\\0", "\\t", "\\x1b", "\\x7f"}) {
    const std::string yaml =
        Route("request_headers: { set: { a: \"s3cret" + std::string{control} + "b\" } }");
    ExpectProblem(
        {yaml,
         "5:34: error: routes[0].request_headers.set.a: has a line break or another control "
         "character, which no header may hold"});
    EXPECT_THAT(ProblemText(Read(yaml)), Not(HasSubstr("s3cret")));
  }
  EXPECT_THAT(GoodRoute("request_headers: { set: { a: é, b: '' } }").request_headers.set,
              ElementsAre(HeaderEdits::Set{"a", "é"}, HeaderEdits::Set{"b", ""}));
}

std::string Warned(std::string_view yaml) {
  const ConfigReading reading = Read(yaml);
  EXPECT_TRUE(reading.config) << ProblemText(reading);
  return ProblemText(reading);
}

TEST(GatewayWarningsTest, WarnsAboutUnreachableRoutes) {
  EXPECT_THAT(Warned(Routes({"upstream: api, match: { path: /a }", "upstream: api",
                             "upstream: api, match: { path: /b }"})),
              HasSubstr("6:5: warning: routes[2]: is never used: the first route that matches "
                        "serves a request, and `api-2` on line 5 matches every request that this "
                        "route matches; put this route first"));
  const auto second = [](const std::string& first, const std::string& match) {
    return Warned(Routes(
        {"upstream: api, match: { " + first + " }", "upstream: api, match: { " + match + " }"}));
  };
  EXPECT_THAT(second("path: /a/**", "path: /a/**"), HasSubstr("5:5: warning: routes[1]: is never"));
  EXPECT_THAT(second("path: /a/**", "path: [/a, /a/:b], method: GET"), HasSubstr("is never used"));
  EXPECT_THAT(second("path: /a/**", "path: [/a, /b]"), Not(HasSubstr("is never used")));
  EXPECT_THAT(second("path: /a/**", "path: /**"), Not(HasSubstr("is never used")));
  EXPECT_THAT(second("path: /a, method: GET", "path: /a"), Not(HasSubstr("is never used")));
  EXPECT_THAT(second("header: { x: 'a*' }", "header: { x: 'b*' }"), Not(HasSubstr("is never")));
}

TEST(GatewayWarningsTest, WarnsAboutUnusedUpstreamsAndSections) {
  const std::string rest = "routes: [ { upstream: api } ]\n";
  EXPECT_THAT(Warned("listen: { gateway: '127.0.0.1:80' }\nupstreams:\n  api: { targets: "
                     "'http://h' }\n  old: { targets: 'http://h' }\n" +
                     rest),
              HasSubstr("4:3: warning: upstreams.old: no route uses it"));
  EXPECT_THAT(Warned(kHead + rest), Not(HasSubstr("no route uses it")));
  EXPECT_THAT(Warned("gateway: { merge_slashes: true }\naccess_log: off\n"),
              HasSubstr("1:10: warning: gateway: has no effect without `listen.gateway`\n"
                        "2:13: warning: access_log: has no effect without `listen.gateway`\n"));
  EXPECT_THAT(Warned(kHead + rest + "gateway: { merge_slashes: true }\naccess_log: off\n"),
              Not(HasSubstr("no effect")));
}

TEST(GatewayWarningsTest, WarnsAboutResponseCostsWithoutGateway) {
  const std::string rule = "rules: [ { id: a, per: const, limit: 1/s, cost: 'response:x' } ]\n";
  EXPECT_THAT(Warned(rule), HasSubstr("has no effect without a gateway"));
  EXPECT_EQ(Warned(kHead + "routes: [ { upstream: api } ]\n" + rule), "");
  EXPECT_EQ(Warned(kHead + "routes: [ { upstream: api } ]\n" +
                   "rules: [ { id: a, per: route, limit: 1/s } ]\n"),
            "");
}

class AccessLogFileTest : public ConfigFolder {
 protected:
  std::string PathOf(const std::string& text) const {
    return Good("access_log: " + text + "\n", folder_).access_log.path;
  }
};

TEST_F(AccessLogFileTest, ResolvesPathsRelativeToTheConfiguration) {
  std::filesystem::create_directory(folder_ + "/logs");
  EXPECT_EQ(PathOf("access.log"), folder_ + "/access.log");
  EXPECT_EQ(PathOf("./stdout"), folder_ + "/stdout");
  EXPECT_EQ(PathOf("logs/access.log"), folder_ + "/logs/access.log");
  EXPECT_EQ(PathOf(folder_ + "/logs/a"), folder_ + "/logs/a");
  EXPECT_EQ(PathOf("'off'"), "off");
  EXPECT_THAT(ProblemText(Read("access_log: absent/access.log\n", folder_)),
              HasSubstr("there is no folder `" + folder_ + "/absent`"));
  EXPECT_THAT(ProblemText(Read("access_log: ./logs\n", folder_)), HasSubstr("/logs` is a folder"));
}

TEST_F(AccessLogFileTest, AcceptsFileNameInCurrentFolder) {
  const ConfigReading reading = Read("access_log: access.log\n", ".");
  ASSERT_TRUE(reading.config) << ProblemText(reading);
  EXPECT_EQ(reading.config->access_log.path, "access.log");
}

}  // namespace
}  // namespace tidegate

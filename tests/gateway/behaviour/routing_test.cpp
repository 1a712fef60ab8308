// SPDX-License-Identifier: Apache-2.0
// The upstream that a request is routed to, and the path, host and header fields that this upstream
// receives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"

namespace tidegate::behaviour {
namespace {

std::string Hosted(std::string_view target, std::string_view host) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
}

class RoutingTest : public testing::Test {
 protected:
  /// Returns a gateway with these routes, written in YAML's flow style, and the upstreams `a` and
  /// `b`.
  Gate Routes(std::string_view routes, std::string_view more = {}) {
    return Gate("routes:\n" + std::string(routes) + "upstreams: {a: {targets: \"" + a_.url() +
                "\"}, b: {targets: \"" + b_.url() + "\"}}\n" + std::string(more));
  }
  ScriptedUpstream a_{ScriptedUpstream::Ok("a")};
  ScriptedUpstream b_{ScriptedUpstream::Ok("b")};
};

TEST_F(RoutingTest, UsesFirstMatchingRoute) {
  Gate gate = Routes(
      "  - {match: {path: /v1/**}, upstream: a}\n"
      "  - {match: {path: /v1/users}, upstream: b}\n"
      "  - {match: {path: /v2/**}, upstream: b}\n");
  EXPECT_EQ(gate.Get("/v1/users").body, "a");
  EXPECT_EQ(gate.Get("/v1").body, "a");
  EXPECT_EQ(gate.Get("/v2/x?y=z").body, "b");
  const HttpResponse none = gate.Get("/v3");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(gate.Get("/v1users").status, 404) << "the route matched a part of a path segment";
}

TEST_F(RoutingTest, MatchesByHost) {
  Gate gate = Routes(
      "  - {match: {host: api.example.com}, upstream: a}\n"
      "  - {match: {host: \"*.example.com\"}, upstream: b}\n");
  Client client(gate.at());
  EXPECT_EQ(client.Ask(Hosted("/", "api.example.com")).body, "a");
  EXPECT_EQ(client.Ask(Hosted("/", "API.Example.com:8080")).body, "a");
  EXPECT_EQ(client.Ask(Hosted("/", "api.example.com.")).body, "a");
  EXPECT_EQ(client.Ask(Hosted("/", "www.example.com")).body, "b");
  EXPECT_EQ(client.Ask(Hosted("/", "example.org")).status, 404);
  EXPECT_EQ(client.Ask(Hosted("http://api.example.com/x", "www.example.com")).body, "a")
      << "Host was preferred to the host of an absolute target";
  EXPECT_EQ(a_.last().Field("Host"), "api.example.com");
  EXPECT_EQ(a_.last().target(), "/x");
}

TEST_F(RoutingTest, MatchesByMethodAndHeader) {
  Gate gate = Routes(
      "  - {match: {method: [PUT, DELETE]}, upstream: a}\n"
      "  - {match: {header: {x-canary: \"yes*\"}}, upstream: b}\n"
      "  - {match: {method: GET, header: {accept: \"*json*\", x-v: \"2\"}}, upstream: a}\n");
  Client client(gate.at());
  EXPECT_EQ(client.Ask(RequestText("DELETE", "/", {}, "")).body, "a");
  EXPECT_EQ(client.Get("/", "X-Canary: yes, please\r\n").body, "b");
  EXPECT_EQ(client.Get("/", "Accept: application/json\r\nX-V: 2\r\n").body, "a");
  EXPECT_EQ(client.Get("/", "Accept: application/json\r\n").status, 404);
}

TEST_F(RoutingTest, RewritesWholeSegmentsOnly) {
  Gate gate = Routes(
      "  - {match: {path: /v1/**}, upstream: a, rewrite: {prefix: /v1, with: /}}\n"
      "  - {match: {path: /old/**}, upstream: a, rewrite: {prefix: /old, with: /new/api}}\n"
      "  - {upstream: b, rewrite: {prefix: /x, with: /y}}\n");
  const auto as = [&](std::string_view target) {
    const std::string body = gate.Get(target).body;
    return body + (body == "a" ? a_ : b_).last().target();
  };
  EXPECT_EQ(as("/v1/users?q=/v1"), "a/users?q=/v1");
  EXPECT_EQ(as("/v1"), "a/");
  EXPECT_EQ(as("/v1/"), "a/");
  EXPECT_EQ(as("/v1?x"), "a/?x");
  EXPECT_EQ(as("/v1x"), "b/v1x");
  EXPECT_EQ(as("/old"), "a/new/api");
  EXPECT_EQ(as("/old/"), "a/new/api/");
  EXPECT_EQ(as("/old/a/b"), "a/new/api/a/b");
  EXPECT_EQ(as("/xx/x"), "b/xx/x");
  EXPECT_EQ(as("/x/x"), "b/y/x");
}

TEST_F(RoutingTest, ForwardsNormalizedPath) {
  Gate gate = Routes("  - {upstream: a}\n");
  const auto as = [&](std::string_view target) {
    EXPECT_EQ(gate.Get(target).status, 200) << target;
    return a_.last().target();
  };
  EXPECT_EQ(as("/a/./b/../c"), "/a/c");
  EXPECT_EQ(as("/a/%2e%2E/b"), "/b");
  EXPECT_EQ(as("//a///b"), "/a/b");
  EXPECT_EQ(as("/%61%7e%41"), "/a~A");
  EXPECT_EQ(as("/a;b.c%20"), "/a;b.c%20");
  EXPECT_EQ(as("/a%25b"), "/a%25b");
  EXPECT_EQ(as("/a/?"), "/a/?");
  EXPECT_EQ(as("/a?b=%2e%2e/../c&d=%zz"), "/a?b=%2e%2e/../c&d=%zz") << "the query was changed";
  EXPECT_EQ(as("/a/b/.."), "/a/");
}

TEST_F(RoutingTest, AnswersWith400ToPathWithoutNormalForm) {
  Gate gate = Routes("  - {upstream: a}\n");
  for (const std::string_view target :
       {"/../etc/passwd", "/a/../../b", "/%2e%2e/x", "/a%", "/a%0", "/a%zz", "/a%00b"}) {
    const HttpResponse answer = gate.Get(target);
    EXPECT_EQ(answer.status, 400) << target;
    EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  }
  EXPECT_EQ(a_.requests(), 0);
}

TEST_F(RoutingTest, ForwardsDuplicateSlashesIfConfigured) {
  Gate gate = Routes("  - {match: {path: /admin}, upstream: b}\n  - {upstream: a}\n",
                     "gateway: {merge_slashes: false}\n");
  EXPECT_EQ(gate.Get("/admin//").body, "b") << "the upstream may merge slashes";
  EXPECT_EQ(b_.last().target(), "/admin//");
  EXPECT_EQ(gate.Get("//x/admin").status, 400) << "the upstream may take x for a host";
}

TEST_F(RoutingTest, ForwardsEncodedSlashesOnlyIfTheRouteAllowsThem) {
  Gate gate = Routes(
      "  - {match: {path: /git/**}, upstream: a, encoded_slashes: match}\n  - {upstream: b}\n",
      "deny: [{path: /git/secret/**}]\n");
  EXPECT_EQ(gate.Get("/git/group%2fproject").status, 200);
  EXPECT_EQ(a_.last().target(), "/git/group%2Fproject");
  EXPECT_EQ(gate.Get("/git/secret%2fproject").status, 403);
  EXPECT_EQ(gate.Get("/git%2Fsecret/project").status, 403);
  EXPECT_EQ(gate.Get("/git/x/..%2fsecret/y").status, 400);
  for (const std::string_view target : {"/other%2fx", "/a%5Cb", "/v1/login%2f"}) {
    const HttpResponse answer = gate.Get(target);
    EXPECT_EQ(answer.status, 400) << target;
    EXPECT_THAT(answer.body, testing::HasSubstr("encoded_slashes: match")) << target;
  }
  EXPECT_EQ(b_.requests(), 0);
}

TEST_F(RoutingTest, UsesFirstRouteThatMatchesAnyFormOfThePath) {
  Gate gate = Routes("  - {match: {path: /internal/**}, upstream: a}\n  - {upstream: b}\n",
                     "paths: {ignore_case: true}\n");
  for (const std::string_view target :
       {"/internal", "/internal;x/y", "/internal./y", "/INTERNAL/y", "/Internal%20/"}) {
    EXPECT_EQ(gate.Get(target).body, "a") << target;
    EXPECT_EQ(a_.last().target(), target);
  }
}

TEST_F(RoutingTest, RewritesPrefixInAnyCaseWhenCaseIsIgnored) {
  Gate gate = Routes("  - {match: {path: /v1/**}, upstream: a, rewrite: {prefix: /v1, with: /}}\n",
                     "paths: {ignore_case: true}\n");
  EXPECT_EQ(gate.Get("/V1/Users").status, 200);
  EXPECT_EQ(a_.last().target(), "/Users");
}

// If one spelling were not rewritten, a path could leave the part of the upstream that its route
// rewrites to.
TEST_F(RoutingTest, RewritesEverySpellingOfPrefix) {
  Gate gate = Routes(
      "  - {match: {path: /v1/**}, upstream: a, encoded_slashes: match,"
      " rewrite: {prefix: /v1, with: /public}}\n",
      "gateway: {merge_slashes: false}\n");
  const std::pair<const char*, const char*> cases[] = {
      {"/v1/x", "/public/x"},    {"/v1;a/x", "/public/x"}, {"/v1./x;b", "/public/x;b"},
      {"/v1%20/x", "/public/x"}, {"/v1;a", "/public"},     {"/v1/a%2Fb", "/public/a%2Fb"},
  };
  for (const auto& [target, forwarded] : cases) {
    EXPECT_EQ(gate.Get(target).status, 200) << target;
    EXPECT_EQ(a_.last().target(), forwarded) << target;
  }
  EXPECT_EQ(gate.Get("/v1%2Fx").status, 400);
}

TEST_F(RoutingTest, ExplainsWhyRequestIsInvalid) {
  Gate gate = Routes("  - {upstream: a}\n");
  const auto reason = [&](const std::string& line) {
    const HttpResponse answer = Client(gate.at()).Ask(line + " HTTP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_EQ(answer.status, 400) << line;
    return answer.body;
  };
  EXPECT_THAT(reason("OPTIONS *"), testing::HasSubstr("OPTIONS * is not forwarded"));
  EXPECT_THAT(reason("post /login"), testing::HasSubstr("method `post` is not in upper case"));
  EXPECT_THAT(reason("GET /a/%zz"), testing::HasSubstr("malformed percent-encoding"));
  EXPECT_THAT(reason("GET /../a"), testing::HasSubstr("leaves the root"));
  EXPECT_THAT(reason("GET /a/..;/b"), testing::HasSubstr("ambiguous path"));
  EXPECT_EQ(a_.requests(), 0);
}

TEST_F(RoutingTest, SetsAndRemovesConfiguredHeaderFields) {
  a_.Use(ScriptedUpstream::Each([](const HttpRequest&) {
    return Http("200 OK", "Server: secret/1\r\nX-Old: 1\r\nX-Old: 2\r\nX-Keep: me\r\n");
  }));
  Gate gate = Routes(
      "  - upstream: a\n"
      "    request_headers: {set: {x-env: prod}, remove: [x-debug, cookie]}\n"
      "    response_headers: {set: {x-old: new, strict-transport-security: max-age=1}, "
      "remove: [server]}\n");
  const HttpResponse answer =
      gate.Get("/", "X-Env: test\r\nx-ENV: other\r\nX-Debug: 1\r\nCookie: c=1\r\nX-Else: e\r\n");
  const HttpRequest request = a_.last();
  EXPECT_EQ(request.fields.List("x-env"), "prod");
  EXPECT_FALSE(request.Has("x-debug"));
  EXPECT_FALSE(request.Has("cookie"));
  EXPECT_EQ(request.Field("x-else"), "e");
  EXPECT_FALSE(answer.Has("Server"));
  EXPECT_EQ(answer.fields.List("X-Old"), "new");
  EXPECT_EQ(answer.Field("X-Keep"), "me");
  EXPECT_EQ(answer.Field("Strict-Transport-Security"), "max-age=1");
}

TEST_F(RoutingTest, SendsClientHostTargetHostOrFixedHost) {
  Gate gate = Routes(
      "  - {match: {path: /kept}, upstream: a}\n"
      "  - {match: {path: /target}, upstream: a, host: target}\n"
      "  - {match: {path: /fixed}, upstream: a, host: \"internal.example:81\"}\n");
  Client client(gate.at());
  const auto as = [&](std::string_view target) {
    EXPECT_EQ(client.Ask(Hosted(target, "WWW.example.com:99")).status, 200);
    EXPECT_EQ(a_.last().Count("Host"), 1);
    EXPECT_EQ(a_.last().Field("X-Forwarded-Host"), "WWW.example.com:99");
    return a_.last().Field("Host");
  };
  EXPECT_EQ(as("/kept"), "WWW.example.com:99");
  EXPECT_EQ(as("/target"), "127.0.0.1:" + std::to_string(a_.port()));
  EXPECT_EQ(as("/fixed"), "internal.example:81");
}

TEST_F(RoutingTest, RulesSeeRouteAndPathBeforeRewrite) {
  Gate gate = Routes(
      "  - {id: first, match: {path: /v1/**}, upstream: a, rewrite: {prefix: /v1, with: /}}\n"
      "  - {id: second, upstream: b}\n",
      "rules:\n  - {id: by-route, per: route, limit: 2/h}\n"
      "  - {id: by-path, match: {path: /v1/x}, per: const, limit: 1/h}\n");
  EXPECT_EQ(gate.Get("/v1/x").status, 200);
  EXPECT_EQ(gate.Get("/v1/x").status, 429) << "by-path";
  EXPECT_EQ(gate.Get("/v1/y").status, 200);
  EXPECT_EQ(gate.Get("/v1/y").status, 429) << "by-route";
  EXPECT_EQ(gate.Get("/x").status, 200);
  EXPECT_EQ(gate.Get("/y").status, 200);
  EXPECT_EQ(gate.Get("/z").status, 429);
}

TEST_F(RoutingTest, RejectsTraceAndConnect) {
  Gate gate = Routes("  - {upstream: a}\n");
  EXPECT_EQ(Client(gate.at()).Ask("TRACE / HTTP/1.1\r\nHost: test\r\n\r\n").status, 405);
  Client client(gate.at());
  client.Send("CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n");
  const int status = client.Read().status;
  EXPECT_TRUE(status == 405 || status == 400) << status;
  EXPECT_EQ(a_.requests(), 0);
}

TEST_F(RoutingTest, NeverForwardsOptionsAsteriskAsPath) {
  Gate gate = Routes("  - {upstream: a}\n");
  Client client(gate.at());
  client.Send("OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n");
  const HttpResponse answer = client.Read();
  // The gateway may forward `*` unchanged or reject the request, but must never forward `*` as a
  // path.
  if (answer.status == 200) {
    EXPECT_EQ(a_.last().target(), "*");
  } else {
    EXPECT_GE(answer.status, 400);
    EXPECT_LT(answer.status, 500);
  }
}

}  // namespace
}  // namespace tidegate::behaviour

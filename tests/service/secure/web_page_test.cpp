// SPDX-License-Identifier: Apache-2.0
// Tests requests that a web page could make a browser on this machine send. The server recognizes
// them by Host, Origin, Sec-Fetch-Site and Content-Type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"

namespace tidegate::service {
namespace {

class WebPageTest : public testing::Test {
 protected:
  static Config MakeConfig() {
    return AllListeners("http://127.0.0.1:9", "client_ip: {trusted_proxies: [127.0.0.1]}\n");
  }
  std::string OwnPort() { return ":" + std::to_string(service_.api().port()); }
  HttpResponse Send(ListenerId listener, const std::string& request) {
    HttpClient client(At(service_, listener));
    client.Send(request);
    return client.Read();
  }
  int Peek(std::string_view host, std::string_view lines = {},
           std::string_view type = "Content-Type: application/json\r\n") {
    const std::string body = ByRule("per-key", "a");
    std::string text = "POST /v1/peek HTTP/1.1\r\nHost: ";
    text.append(host).append("\r\n").append(type).append(lines);
    text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
    return Send(ListenerId::kApi, text + body).status;
  }
  int Forward(const std::string& host, const std::string& lines,
              const std::string& path = "/v1/auth") {
    return Send(ListenerId::kApi,
                "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + lines + "\r\n")
        .status;
  }

  Service service_{MakeConfig()};
};

constexpr std::string_view kForwarded =
    "X-Forwarded-Uri: /visits/x\r\nX-Forwarded-Method: GET\r\nX-Forwarded-For: 198.51.100.1\r\n";
constexpr std::string_view kOriginal =
    "X-Original-URI: /visits/x\r\nX-Original-Method: GET\r\nX-Forwarded-For: 198.51.100.2\r\n";

TEST_F(WebPageTest, ApiChecksHostOnLoopback) {
  for (const std::string host :
       {"localhost", "LOCALHOST:8081", "127.0.0.1", "127.0.0.1:8081", "[::1]:8081"}) {
    EXPECT_EQ(Peek(host), 200) << host;
  }
  for (const std::string& host :
       {std::string("evil.example"), "evil.example" + OwnPort(), std::string("localhost.evil")}) {
    EXPECT_EQ(Peek(host), 403) << host;
  }
}

TEST_F(WebPageTest, AcceptsAnyHostIfCallersAuthenticate) {
  Config config = MakeConfig();
  config.listen.api.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = BothTokens();
  Service service(config);
  HttpClient client(service.api());
  std::string request = Post("/v1/peek", ByRule("per-key", "a"),
                             "Authorization: Bearer " + std::string(kAllToken) + "\r\n");
  request.replace(request.find("localhost"), 9, "tidegate.example");
  client.Send(request);
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(WebPageTest, ForwardAuthAcceptsTheHostOfTheProxysClient) {
  for (const std::string_view fields : {kForwarded, kOriginal}) {
    for (const std::string host : {"api.example.com", "api.example.com:8443", "127.0.0.1"}) {
      // The client of the proxy may be a browser that shows any page.
      EXPECT_EQ(Forward(host, std::string(fields) +
                                  "Origin: https://shop.example\r\nSec-Fetch-Site: cross-site\r\n"),
                200)
          << host;
      service_.Advance(std::chrono::hours{1});
    }
  }
  EXPECT_EQ(Forward("api.example.com", "X-Forwarded-For: 198.51.100.3\r\n", "/v1/auth/visits/x"),
            200)
      << "a request in the form that Envoy sends";
}

TEST_F(WebPageTest, ForwardAuthRejectsWebPages) {
  const std::string rebound = "evil.example" + OwnPort();
  EXPECT_EQ(Forward(rebound, std::string(kForwarded)), 403) << "a page may add these header fields";
  EXPECT_EQ(Forward(rebound, std::string(kOriginal)), 403);
  EXPECT_EQ(Forward(rebound, "", "/v1/auth/visits/x"), 403);
  EXPECT_EQ(Forward("evil.example", "", "/v1/auth/visits/x"), 403);
  EXPECT_EQ(Forward("127.0.0.1" + OwnPort(), "Sec-Fetch-Site: cross-site\r\n", "/v1/auth/visits/x"),
            403)
      << "a request for an image on another site";
  EXPECT_EQ(
      Forward("127.0.0.1" + OwnPort(), "Origin: http://evil.example\r\n", "/v1/auth/visits/x"),
      403);
}

TEST_F(WebPageTest, SecFetchSiteOfOtherSitesIsRejected) {
  struct Case {
    std::string_view value;
    bool rejected;
  };
  constexpr Case kCases[] = {{"cross-site", true},
                             {"same-site", true},
                             {"", true},
                             {"same-origin", false},
                             {"none", false}};
  for (const Case& row : kCases) {
    const std::string line = "Sec-Fetch-Site: " + std::string(row.value) + "\r\n";
    EXPECT_EQ(Peek("127.0.0.1", line), row.rejected ? 403 : 200) << row.value;
    const auto get = [&](ListenerId listener, std::string_view path) {
      std::string text = "GET ";
      text.append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n").append(line);
      return Send(listener, text.append("\r\n")).status;
    };
    EXPECT_EQ(get(ListenerId::kApi, "/openapi.json"), row.rejected ? 403 : 200) << row.value;
    for (const std::string_view path : {"/metrics", "/v1/status", "/v1/rules", "/openapi.json"}) {
      EXPECT_EQ(get(ListenerId::kAdmin, path), row.rejected ? 403 : 200) << path << row.value;
    }
    EXPECT_EQ(get(ListenerId::kAdmin, "/healthz"), 200);
    EXPECT_EQ(get(ListenerId::kAdmin, "/readyz"), 200);
  }
}

TEST_F(WebPageTest, RequiresExactlyOneJsonContentType) {
  const std::string json = "Content-Type: application/json\r\n";
  EXPECT_EQ(Peek("127.0.0.1", {}, json), 200);
  EXPECT_EQ(Peek("127.0.0.1", {}, "content-type: Application/JSON ; charset=utf-8\r\n"), 200);
  for (const std::string& type : std::initializer_list<std::string>{
           "", json + json, json + "Content-Type: text/plain\r\n",
           "Content-Type: text/plain\r\n" + json, "Content-Type: application/json, text/plain\r\n",
           "Content-Type: application/json;a=b, text/plain\r\n", "Content-Type: ,\r\n",
           "Content-Type: \r\n", "Content-Type: text/plain\r\n"}) {
    EXPECT_EQ(Peek("127.0.0.1", {}, type), 415) << type;
  }
}

TEST_F(WebPageTest, EveryResponseForbidsContentSniffing) {
  const std::string host = " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  for (const ListenerId listener : {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kGateway}) {
    for (const std::string& request :
         {Get("/openapi.json"), Get("/healthz"), Get("/no-such-endpoint"), Get("/metrics"),
          Post("/v1/decide", ByRule("per-key", "b")), Post("/v1/decide", "not JSON"),
          "GET /v1/status" + host + "Sec-Fetch-Site: cross-site\r\n\r\n",
          std::string("not HTTP\r\n\r\n"), "GET /" + std::string(9'000, 'a') + host + "\r\n",
          "GET /" + host + "Expect: wonders\r\n\r\n"}) {
      const HttpResponse answer = Send(listener, request);
      EXPECT_EQ(answer.Field("X-Content-Type-Options"), "nosniff")
          << request.substr(0, 60) << answer.status;
      EXPECT_EQ(answer.Count("X-Content-Type-Options"), 1);
    }
  }
}

}  // namespace
}  // namespace tidegate::service

// SPDX-License-Identifier: Apache-2.0
// Tests which callers may use which operations over HTTP: the API, /v1/auth and the admin port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/secure/callers.hpp"

namespace tidegate::service {
namespace {

using Auth = ListenSpec::Auth;
using testing::StartsWith;

enum class Field : std::uint8_t { kAuthorization, kOwn };
std::string TokenLine(std::string_view token, Field field) {
  if (token.empty()) return {};
  std::string line = field == Field::kOwn ? "X-Tidegate-Token: " : "Authorization: Bearer ";
  return line.append(token).append("\r\n");
}

/// A request to the API.
struct ApiRequest {
  std::string_view path;
  std::string body;
  Operation operation;
};
const std::vector<ApiRequest>& ApiRequests() {
  static const std::string kLease = ByRule("jobs", "a", R"(,"lease":"one")");
  static const std::vector<ApiRequest> kAll{
      {"/v1/decide", ByRule("per-key", "a"), Operation::kDecide},
      {"/v1/decide/batch", R"({"requests":[)" + ByRule("per-key", "a") + "]}", Operation::kDecide},
      {"/v1/peek", ByRule("per-key", "a"), Operation::kDecide},
      {"/v1/debit", ByRule("per-key", "a", R"(,"cost":1)"), Operation::kGiveBack},
      {"/v1/acquire", ByRule("jobs", "a", R"(,"lease":"two")"), Operation::kDecide},
      {"/v1/renew", kLease, Operation::kGiveBack},
      {"/v1/release", kLease, Operation::kGiveBack},
      {"/v1/refund", ByRule("per-key", "a", R"(,"cost":1,"id":"ONCE")"), Operation::kGiveBack}};
  return kAll;
}

/// Returns the body of the request; a refund gets an id that was not used before.
std::string BodyOf(const ApiRequest& request) {
  static int ids = 0;
  std::string body = request.body;
  if (const std::size_t at = body.find("ONCE"); at != std::string::npos) {
    body.replace(at, 4, std::to_string(++ids));
  }
  return body;
}

class AccessTest : public testing::TestWithParam<Place> {
 protected:
  static Config MakeConfig(ListenerId listener) {
    Config config =
        AllListeners("http://127.0.0.1:9", "client_ip: {trusted_proxies: [127.0.0.1]}\n");
    GetParam().Apply(config, listener);
    return config;
  }
  /// Returns what the store contains, as a caller on loopback sees it.
  static std::string State(test::RespClient& looks) {
    return looks.Ask({"TG.PEEK", "per-key", "a"}) + looks.Ask({"TG.PEEK", "jobs", "a"}) +
           looks.Ask({"TG.PEEK", "visits", "198.51.100.1"});
  }
  static bool CanPresent(Caller caller) {
    return caller != Caller::kCertificate || GetParam().certificates;
  }
};

TEST_P(AccessTest, ApiServesCallersByTheirRights) {
  Service service(MakeConfig(ListenerId::kApi));
  test::RespClient looks(At(service, ListenerId::kResp));
  for (const Caller caller : kCallers) {
    if (!CanPresent(caller)) continue;
    HttpClient client(GetParam().Connect(service, ListenerId::kApi, caller));
    for (const Field field : {Field::kAuthorization, Field::kOwn}) {
      for (const ApiRequest& request : ApiRequests()) {
        looks.Ask({"TG.RESET", "per-key", "a"});
        looks.Ask({"TG.RESET", "jobs", "a"});
        looks.Ask({"TG.DECIDE", "per-key", "a"});
        looks.Ask({"TG.ACQUIRE", "jobs", "a", "one"});
        const std::string before = State(looks);
        client.Send(Post(request.path, BodyOf(request), TokenLine(TokenOf(caller), field)));
        const HttpResponse answer = client.Read();
        const Outcome outcome = Expected(GetParam(), caller, request.operation);
        const int status = outcome == Outcome::kServed    ? 200
                           : outcome == Outcome::kUnknown ? 401
                                                          : 403;
        EXPECT_EQ(answer.status, status) << request.path << " of " << caller << answer.body;
        EXPECT_EQ(answer.Has("WWW-Authenticate"), status == 401) << caller;
        EXPECT_THAT(answer.Field("WWW-Authenticate"), StartsWith(status == 401 ? "Bearer" : ""));
        const bool changes =
            status == 200 && request.path != "/v1/peek" && request.path != "/v1/renew";
        EXPECT_EQ(State(looks) != before, changes) << request.path << " of " << caller;
      }
    }
    client.Send(Get("/openapi.json"));
    EXPECT_EQ(client.Read().status, 200) << "the OpenAPI document needs no credentials";
  }
}

TEST_P(AccessTest, ForwardAuthServesCallersByTheirRights) {
  Service service(MakeConfig(ListenerId::kApi));
  test::RespClient looks(At(service, ListenerId::kResp));
  for (const Caller caller : kCallers) {
    if (!CanPresent(caller)) continue;
    HttpClient client(GetParam().Connect(service, ListenerId::kApi, caller));
    for (const Field field : {Field::kAuthorization, Field::kOwn}) {
      looks.Ask({"TG.RESET", "visits", "198.51.100.1"});
      const std::string before = State(looks);
      client.Send(
          "GET /v1/auth HTTP/1.1\r\nHost: test\r\nX-Forwarded-Uri: /visits/x\r\n"
          "X-Forwarded-Method: GET\r\nX-Forwarded-For: 198.51.100.1\r\n" +
          TokenLine(TokenOf(caller), field) + "\r\n");
      const HttpResponse answer = client.Read();
      // Tidegate ignores the Authorization header that belongs to the client of the proxy.
      const bool seen = field == Field::kOwn || caller == Caller::kCertificate;
      const Outcome outcome =
          Expected(GetParam(), seen ? caller : Caller::kNone, Operation::kDecide);
      const int status = outcome == Outcome::kServed ? 200 : 500;
      EXPECT_EQ(answer.status, status) << caller << answer.body;
      EXPECT_FALSE(answer.Has("WWW-Authenticate"));
      EXPECT_EQ(State(looks) != before, status == 200) << caller;
    }
  }
}

TEST_P(AccessTest, AdminServesCallersByTheirRights) {
  const Place& place = GetParam();
  // Other configurations of the admin listener are rejected when they are read.
  if (place.auth == Auth::kOpen || (!place.loopback && !place.tokens)) return;
  Service service(MakeConfig(ListenerId::kAdmin));
  for (const Caller caller : kCallers) {
    if (!CanPresent(caller)) continue;
    HttpClient client(place.Connect(service, ListenerId::kAdmin, caller));
    const auto ask = [&](std::string_view path, Field field) {
      std::string text = "GET ";
      text.append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
      client.Send(text.append(TokenLine(TokenOf(caller), field)).append("\r\n"));
      return client.Read();
    };
    for (const Field field : {Field::kAuthorization, Field::kOwn}) {
      EXPECT_EQ(ask("/healthz", field).status, 200) << caller;
      EXPECT_EQ(ask("/readyz", field).status, 200) << caller;
      const HttpResponse answer = ask("/metrics", field);
      const bool served = Expected(place, caller, Operation::kDecide) == Outcome::kServed;
      EXPECT_EQ(answer.status, served ? 200 : 401) << caller;
      EXPECT_EQ(answer.Has("WWW-Authenticate"), !served);
      EXPECT_EQ(answer.body.find("tidegate_connections") != std::string::npos, served);
      for (const std::string_view token : {kAskToken, kAllToken, kWrongToken}) {
        EXPECT_EQ(answer.body.find(token), std::string::npos) << "the response contains a secret";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, AccessTest, testing::ValuesIn(Place::All()));

// --- How callers present tokens -----------------------------------------------------

class TokenFieldTest : public testing::Test {
 protected:
  static Config MakeConfig() {
    // Wrong tokens that come through a trusted proxy are not throttled.
    Config config =
        AllListeners("http://127.0.0.1:9", "client_ip: {trusted_proxies: [127.0.0.1]}\n");
    config.listen.api.auth = Auth::kRequired;
    config.access.tokens = BothTokens();
    return config;
  }
  int Ask(const std::string& lines) {
    HttpClient client(service_.api());
    client.Send(Post("/v1/peek", ByRule("per-key", "a"), lines));
    return client.Read().status;
  }
  Service service_{MakeConfig()};
  const std::string all_{kAllToken};
};

TEST_F(TokenFieldTest, IgnoresCaseAndSpacesOfTheHeader) {
  EXPECT_EQ(Ask("authorization: bearer " + all_ + "\r\n"), 200);
  EXPECT_EQ(Ask("AUTHORIZATION: BEARER " + all_ + "\r\n"), 200);
  EXPECT_EQ(Ask("Authorization: Bearer   " + all_ + "  \r\n"), 200);
  EXPECT_EQ(Ask("x-tidegate-token:" + all_ + "\r\n"), 200);
}

TEST_F(TokenFieldTest, RejectsTokenThatDoesNotMatchExactly) {
  std::string other = all_;
  other.back() ^= 1;
  std::string upper = all_;
  upper.front() = 'T';
  for (const std::string& token :
       {std::string(), all_.substr(1), all_.substr(0, all_.size() - 1), all_ + "x", other, upper,
        all_ + " " + all_, all_ + "," + all_, std::string("ops"), "ops:" + all_,
        std::string(128, 'x'), std::string(129, 'x'), std::string(5'000, 'x'),
        std::string("\xff\xfe\x80")}) {
    EXPECT_EQ(Ask("Authorization: Bearer " + token + "\r\n"), 401) << token;
    EXPECT_EQ(Ask("X-Tidegate-Token: " + token + "\r\n"), 401) << token;
  }
  EXPECT_EQ(Ask("Authorization: Basic " + all_ + "\r\n"), 401);
  EXPECT_EQ(Ask("Authorization: " + all_ + "\r\n"), 401);
  EXPECT_EQ(Ask("Authorization: Bearer" + all_ + "\r\n"), 401);
  EXPECT_EQ(Ask("Proxy-Authorization: Bearer " + all_ + "\r\n"), 401);
  EXPECT_EQ(Ask("X_Tidegate_Token: " + all_ + "\r\n"), 401);
}

TEST_F(TokenFieldTest, RejectsTokenGivenTwice) {
  const std::string own = "X-Tidegate-Token: " + all_ + "\r\n";
  const std::string bearer = "Authorization: Bearer " + all_ + "\r\n";
  EXPECT_EQ(Ask(own + own), 401);
  EXPECT_EQ(Ask(bearer + bearer), 401);
  EXPECT_EQ(Ask(bearer + own), 401);
  EXPECT_EQ(Ask(own + "X-Tidegate-Token: " + std::string(kAskToken) + "\r\n"), 401);
  HttpClient client(service_.api());
  client.Send("GET /v1/auth/visits/x HTTP/1.1\r\nHost: test\r\n" + own + own + "\r\n");
  EXPECT_EQ(client.Read().status, 500);
}

TEST_F(TokenFieldTest, ChecksTokenBeforeTheBody) {
  HttpClient client(service_.api());
  client.Send(Post("/v1/decide", "this is no JSON"));
  EXPECT_EQ(client.Read().status, 401)
      << "a caller without a token must not learn what is wrong with its body";
}

/// A token authenticates its request and not its connection.
TEST_F(TokenFieldTest, TokenAppliesToOneRequestOnly) {
  HttpClient client(service_.api());
  for (int i = 0; i < 3; ++i) {
    client.Send(Post("/v1/peek", ByRule("per-key", "a"), "X-Tidegate-Token: " + all_ + "\r\n") +
                Post("/v1/peek", ByRule("per-key", "a")));
    EXPECT_EQ(client.Read().status, 200);
    EXPECT_EQ(client.Read().status, 401);
  }
}

TEST(CertificateAndTokenTest, RejectsWrongTokenDespiteValidCertificate) {
  Config config = AllListeners();
  config.listen.api.tls = TlsWithClients(ListenTls::Clients::kRequired);
  config.access.tokens = BothTokens();
  Service service(config);
  TlsHttpClient client(service.api(), {.own = Ours().Issue("client", "DNS:client")});
  const auto refund = [&](std::string_view token) {
    client.Send(Post("/v1/refund", ByRule("per-key", "a", R"(,"cost":1,"id":"i")"),
                     TokenLine(token, Field::kOwn)));
    return client.Read().status;
  };
  EXPECT_EQ(refund(""), 200);
  EXPECT_EQ(refund(kAllToken), 200);
  EXPECT_EQ(refund(kAskToken), 403);
  EXPECT_EQ(refund(kWrongToken), 401);
}

}  // namespace
}  // namespace tidegate::service

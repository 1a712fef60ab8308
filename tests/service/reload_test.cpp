// SPDX-License-Identifier: Apache-2.0
// A reload under load loses no response, resets no bucket and duplicates none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "service/fixture.hpp"

namespace tidegate::service {
namespace {

using namespace std::chrono_literals;

std::string Rules(int limit, std::string_view more = {}) {
  return "rules:\n  - {id: kept, per: header:x-api-key, limit: " + std::to_string(limit) + "/h}\n" +
         std::string(more);
}
constexpr std::string_view kOther = "  - {id: other, per: client_ip, limit: 3/s}\n";

std::int64_t Remaining(const HttpResponse& answer) {
  return answer.Json().at("remaining").as_int64();
}

TEST(ReloadTest, AnswersEveryRequestUnderLoad) {
  constexpr int kLimit = 3000;
  constexpr int kClients = 4;
  Service service(Rules(kLimit), 2);
  std::atomic<bool> reloading{true};
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      HttpClient client(service.api());
      // After the last reload, each client continues until the quota is certainly used up.
      for (int extra = kLimit; extra > 0; extra -= reloading ? 0 : 1) {
        client.Send(Post("/v1/decide", ByRule("kept", "alice")));
        const auto answer = client.TryRead();
        if (answer && answer->status == 200) {
          ++allowed;
        } else if (answer && answer->status == 429) {
          ++denied;
          if (!reloading) return;
        } else {
          ++wrong;
          return;
        }
      }
    });
  }
  int reloads = 0;
  for (int i = 0; i < 50; ++i) {
    reloads += service.Reload(Rules(kLimit, i % 2 == 0 ? kOther : "")) ? 1 : 0;
    // Waits for 20 requests between two reloads.
    const int seen = allowed + denied;
    while (allowed + denied < seen + 20 && wrong == 0) std::this_thread::yield();
  }
  reloading = false;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(reloads, 50);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allowed, kLimit);
  const auto counted = [&](std::string_view outcome) {
    return service.Metric("tidegate_decisions_total{rule=\"kept\",outcome=\"" +
                          std::string(outcome) + "\",decided_by=\"store\"}");
  };
  EXPECT_EQ(counted("allowed"), allowed);  // The counters continue over reloads.
  EXPECT_EQ(counted("denied"), denied);
  EXPECT_EQ(service.Metric(R"(tidegate_config_reloads_total{result="applied"})"), 50);
}

TEST(ReloadTest, ChangedLimitKeepsState) {
  Service service(Rules(10));
  for (int i = 0; i < 6; ++i) (void)service.Decide(ByRule("kept", "alice"));
  ASSERT_TRUE(service.Reload(Rules(20)));
  const HttpResponse more = service.Decide(ByRule("kept", "alice"));
  EXPECT_EQ(more.Json().at("limit"), 20);
  // The bucket keeps its state: it is neither fresh nor empty.
  EXPECT_GE(Remaining(more), 3);
  EXPECT_LE(Remaining(more), 13);
  ASSERT_TRUE(service.Reload(Rules(2)));
  const HttpResponse fewer = service.Ask("/v1/peek", ByRule("kept", "alice"));
  EXPECT_EQ(fewer.Json().at("limit"), 2);
  EXPECT_LE(Remaining(fewer), 2);
}

TEST(ReloadTest, RestoredRuleKeepsState) {
  Service service(Rules(10, kOther));
  for (int i = 0; i < 4; ++i) (void)service.Decide(ByRule("kept", "alice"));
  ASSERT_TRUE(service.Reload("rules: [{id: other, per: client_ip, limit: 1/s}]"));
  EXPECT_EQ(service.Decide(ByRule("kept", "alice")).status, 404);
  ASSERT_TRUE(service.Reload(Rules(10)));
  EXPECT_EQ(Remaining(service.Ask("/v1/peek", ByRule("kept", "alice"))), 6);
}

TEST(ReloadTest, BadConfigurationKeepsOldRules) {
  Service service(Rules(10));
  (void)service.Decide(ByRule("kept", "alice"));
  // The configuration can be parsed but not compiled: one identity has two overrides.
  Config bad = Service::ConfigOf(Rules(10));
  const Quota quota = Quota::Make({.limit = 1}).value();
  bad.rules[0].overrides = {{{{"", "x"}}, quota, {}}, {{{"", "x"}}, quota, {}}};
  bad.rules[0].id = "changed";
  Problems problems;
  EXPECT_FALSE(service.server().Reload(bad, problems));
  EXPECT_FALSE(problems.empty());
  EXPECT_EQ(Remaining(service.Decide(ByRule("kept", "alice"))), 8);
  EXPECT_EQ(service.Decide(ByRule("changed", "alice")).status, 404);
  EXPECT_EQ(service.Metric(R"(tidegate_config_reloads_total{result="refused"})"), 1);
  EXPECT_EQ(service.Metric("tidegate_rules"), 1);
}

TEST(ReloadTest, AppliesApiAndResponseSettings) {
  Service service(Rules(10));
  EXPECT_EQ(service.Decide(R"({"key":"k","limit":"1/s"})").status, 403);
  ASSERT_TRUE(service.Reload("api: {inline_quotas: true}\nresponses: {headers: [x-ratelimit]}\n" +
                             Rules(10)));
  const HttpResponse answer = service.Decide(R"({"key":"k","limit":"1/s"})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.Has("X-RateLimit-Limit"));
  EXPECT_FALSE(answer.Has("RateLimit"));
}

TEST(ReloadTest, KeepsHashedIdentitiesWithoutConfiguredKey) {
  Service service(Rules(10));
  (void)service.Decide(ByRule("kept", "alice"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(service.Reload(Rules(10)));
  EXPECT_EQ(Remaining(service.Ask("/v1/peek", ByRule("kept", "alice"))), 9);
}

TEST(DrainTest, AnswersSentRequestsAndCloses) {
  std::atomic<bool> drained{false};
  Service service(Rules(1'000'000), 2);
  HttpClient idle(service.api());
  HttpClient busy(service.api());
  busy.Send(Post("/v1/decide", ByRule("kept", "alice")));
  EXPECT_EQ(busy.Read().status, 200);
  const std::string next = Post("/v1/decide", ByRule("kept", "alice"));
  busy.Send(next.substr(0, 50));
  service.server().Drain([&] { drained = true; });
  busy.Send(next.substr(50));
  HttpResponse last = busy.Read();
  EXPECT_EQ(last.status, 200);
  if (!last.Has("Connection")) {  // The response was sent before the drain began.
    busy.Send(next);
    last = busy.Read();
    EXPECT_EQ(last.status, 200);
  }
  EXPECT_EQ(last.Field("Connection"), "close");
  EXPECT_EQ(busy.WaitForEnd(), HttpClient::End::kClosed);
  EXPECT_EQ(idle.WaitForEnd(), HttpClient::End::kClosed);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!drained && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(drained);
}

/// A client that has sent several requests when the drain begins loses no response that was sent.
TEST(DrainTest, DoesNotResetResponseBeforePipelinedRequests) {
  for (int round = 0; round < 10; ++round) {
    Service service(Rules(1'000'000));
    HttpClient client(service.api());
    std::string many;
    for (int i = 0; i < 2000; ++i) many += Post("/v1/decide", ByRule("kept", "alice"));
    std::jthread sender([&] { client.Send(many); });
    EXPECT_EQ(client.Read().status, 200);
    service.server().Drain([] {});
    bool closed = false;
    for (int i = 1; i < 2000 && !closed; ++i) {
      const auto answer = client.TryRead();
      ASSERT_TRUE(answer.has_value()) << "the connection ended before its last response";
      EXPECT_EQ(answer->status, 200);
      closed = answer->Field("Connection") == "close";
    }
    sender.join();
    client.EndSending();
    EXPECT_EQ(client.WaitForEnd(), HttpClient::End::kClosed);
  }
}

}  // namespace
}  // namespace tidegate::service

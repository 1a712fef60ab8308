// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>
#include <memory_resource>

#include "frontends/api_frontend.hpp"
#include "service/late_store.hpp"
#include "service/late_support.hpp"

namespace tidegate::service {
namespace {

constexpr std::string_view kConfig = R"(
api: { inline_quotas: true }
rules:
  - id: r
    match: { path: /** }
    per: header:x-api-key | client_ip
    limit: 1000/s
)";

const std::string kDecide = Post("/v1/decide", R"({"rule":"r","identity":"a"})");

struct Late : LatePipeline {
  Late() : LatePipeline(kConfig) { service.Start(); }

  FailureThrottle throttle{1};
  AuthFailures failures{"api", throttle};
  ApiFrontend frontend{pipeline, failures};
  Service service{frontend};
};

std::string BatchOf(int count) {
  std::string body = R"({"requests":[)";
  for (int i = 0; i < count; ++i) {
    body += (i == 0 ? "" : ",") + std::string(R"({"rule":"r","identity":"a)") + std::to_string(i) +
            R"("})";
  }
  return Post("/v1/decide/batch", body + "]}");
}

TEST(BatchTest, AnswersUpTo256Requests) {
  const auto store = NewMemoryStore();
  net::Timers timers;
  DecisionMetrics metrics(timers, {});
  const RealClock clock;
  DecisionPipeline pipeline(*store, metrics, SnapshotOf(kConfig), OverrideTable::Make({}, clock));
  FailureThrottle throttle(1);
  AuthFailures failures("api", throttle);
  ApiFrontend frontend(pipeline, failures);
  Service service(frontend);
  service.Start();
  Client client(service.port());
  for (const int count : {1, 8, 64, 256}) {
    client.Send(BatchOf(count));
    EXPECT_EQ(client.Receive("]}\n").substr(0, 15), "HTTP/1.1 200 OK") << count;
  }
}

TEST(BatchTest, AnswersWhenTheStoreFinishesLater) {
  Late late;
  Client client(late.service.port());
  client.Send(BatchOf(256));
  AwaitHeld(late.store, 256);
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  EXPECT_EQ(client.Receive("]}\n").substr(0, 15), "HTTP/1.1 200 OK");
}

// Each source of an identity is compared with all sources before it, which must not take quadratic
// time.
TEST(QuestionTest, ReadsManyIdentitySourcesInLinearTime) {
  std::string json = R"({"rule":"r","identity":{)";
  for (int i = 0; json.size() < 260'000; ++i) {
    char member[32];
    std::snprintf(member, sizeof member, "%s\"%05x\":\"\"", i == 0 ? "" : ",", i);
    json += member;
  }
  json += "}}";
  std::pmr::monotonic_buffer_resource memory;
  Question question(memory);
  const auto begin = std::chrono::steady_clock::now();
  (void)ReadQuestion(json, question, memory);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  std::printf("one body of %zu bytes: %d ms\n", json.size(), static_cast<int>(took.count()));
  EXPECT_LT(took, 300ms);
}

// The store answers B's call inside Start of A's call. At this moment, finished but unsent
// responses of A are in the reactor's only buffer, and they must not be sent to B.
TEST(LateStoreTest, SendsEachResponseToItsOwnClient) {
  Late late;
  Client b(late.service.port());
  b.Send(kDecide);
  AwaitHeld(late.store, 1);
  late.store.mode = LateStore::Mode::kFailsAllOnStart;
  Client a(late.service.port());
  a.Send("GET /secret-of-a HTTP/1.1\r\nHost: x\r\n\r\n" + kDecide);
  const std::string to_b = b.Receive("\"rules\":", 1s);
  const std::string to_a = a.Receive("404 Not Found", 1s);
  EXPECT_EQ(to_b.find("404 Not Found"), std::string::npos) << to_b;
  EXPECT_NE(to_a.find("404 Not Found"), std::string::npos) << to_a;
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
}

// B has disconnected when its call is answered. Closing B's connection must not clear the buffer
// that holds A's response.
TEST(LateStoreTest, DeliversResponseAfterAnotherClientDisconnects) {
  Late late;
  Client b(late.service.port());
  b.Send(kDecide);
  AwaitHeld(late.store, 1);
  // The server closes the socket only when it tries to write or read, so the client resets the
  // connection.
  b.Abort();
  AwaitRounds(late.service.reactor());
  late.store.mode = LateStore::Mode::kFailsAllOnStart;
  Client a(late.service.port());
  a.Send("GET /secret-of-a HTTP/1.1\r\nHost: x\r\n\r\n" + kDecide);
  EXPECT_NE(a.Receive("404 Not Found", 1s).find("404 Not Found"), std::string::npos);
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
}

TEST(LateStoreTest, DropsAnswersForDisconnectedClients) {
  Late late;
  {
    Client client(late.service.port());
    client.Send(kDecide + kDecide);
    AwaitHeld(late.store, 1);
    client.Abort();
  }
  AwaitRounds(late.service.reactor());
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  for (int i = 0; i < 100 && late.service.listener().stats().open != 0; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(late.service.listener().stats().open, 0u);
}

TEST(LateStoreTest, AnswersHalfClosedClient) {
  Late late;
  Client client(late.service.port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  ::shutdown(client.fd(), SHUT_WR);
  AwaitRounds(late.service.reactor());
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  EXPECT_NE(client.Receive("]}\n").find("200 OK"), std::string::npos);
}

TEST(LateStoreTest, AnswersPendingCallAfterReload) {
  Late late;
  Client client(late.service.port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  RunOn(late.service.reactor(), [&] { late.pipeline.Use(SnapshotOf("rules: []")); });
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  EXPECT_NE(client.Receive("]}\n").find("\"rule\":\"r\""), std::string::npos);
}

TEST(LateStoreTest, DrainWaitsForPendingCalls) {
  Late late;
  Client client(late.service.port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  std::promise<void> drained;
  auto done = drained.get_future();
  RunOn(late.service.reactor(),
        [&] { late.service.listener().Drain([&] { drained.set_value(); }); });
  EXPECT_EQ(done.wait_for(300ms), std::future_status::timeout);
  RunOn(late.service.reactor(), [&] { late.store.FinishAll(); });
  // A response that was begun before the drain must still announce that it is the last one.
  EXPECT_NE(client.Receive("]}\n").find("Connection: close"), std::string::npos);
  EXPECT_EQ(done.wait_for(3s), std::future_status::ready);
}

}  // namespace
}  // namespace tidegate::service

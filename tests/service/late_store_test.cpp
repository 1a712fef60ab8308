// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <memory_resource>
#include <mutex>

#include "frontends/api_frontend.hpp"
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

std::shared_ptr<const Policy> PolicyOf(std::string_view text) {
  ConfigReading reading = ParseConfig(text);
  EXPECT_TRUE(reading.config.has_value());
  auto identifier =
      std::make_shared<const Identifier>(Identifier::Options{.hmac_key = std::string(32, 'k')});
  auto policy = std::make_shared<Policy>();
  policy->rules = RuleSet::Compile(*reading.config, identifier, reading.problems);
  for (std::size_t i = 0; i < policy->rules->rules().size(); ++i) policy->slots.push_back(1);
  policy->responses = reading.config->responses;
  policy->api = reading.config->api;
  return policy;
}

/// Keeps calls and answers them when told, on the reactor's thread: as a store with a network.
class LateStore final : public Store {
 public:
  enum class Mode { kLate, kFailsAllOnStart };
  std::atomic<Mode> mode{Mode::kLate};
  std::atomic<std::size_t> held{0};

  void Start(Call& call) noexcept override {
    // A batcher whose link turns out to be broken when it writes: those that wait fail first.
    if (mode == Mode::kFailsAllOnStart) FinishAll();
    calls_.push_back(&call);
    held = calls_.size();
  }
  void FinishAll() noexcept {
    while (!calls_.empty()) {
      Call& call = *calls_.front();
      calls_.pop_front();
      held = calls_.size();
      inner_->Start(call);
    }
  }

  Result<std::int64_t> Apply(std::span<const Charge> c, std::int64_t n,
                             std::span<Decision> d) override {
    return inner_->Apply(c, n, d);
  }
  Result<Decision> Apply(const Charge& c) override { return inner_->Apply(c); }
  Result<Decision> Peek(const Charge& c) override { return inner_->Peek(c); }
  Result<Decision> Debit(const Charge& c) override { return inner_->Debit(c); }
  Result<Done> Refund(const Charge& c, const tidegate::Refund& r) override {
    return inner_->Refund(c, r);
  }
  Result<Done> Reset(const Charge& c) override { return inner_->Reset(c); }
  Result<Inspection> Inspect(const Charge& c) override { return inner_->Inspect(c); }
  Result<Done> Renew(const Charge& c) override { return inner_->Renew(c); }
  Result<Done> Release(const Charge& c) override { return inner_->Release(c); }
  StoreStats Stats() const override { return inner_->Stats(); }

 private:
  std::unique_ptr<Store> inner_ = NewMemoryStore();
  std::deque<Call*> calls_;
};

void RunOn(net::Reactor& reactor, std::function<void()> task) {
  std::promise<void> done;
  reactor.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

/// Until the loop has seen what had happened before this call: its next round tells of all of it.
void AwaitRounds(net::Reactor& reactor) {
  for (int i = 0; i < 2; ++i) RunOn(reactor, [] {});
}

void AwaitHeld(const LateStore& store, std::size_t count) {
  for (int i = 0; i < 400 && store.held != count; ++i) std::this_thread::sleep_for(5ms);
  ASSERT_EQ(store.held, count);
}

const std::string kDecide = Post("/v1/decide", R"({"rule":"r","identity":"a"})");

struct Late {
  LateStore store;
  net::Timers timers;
  Tally tally{timers, {}};
  const RealClock clock;
  const OverrideDesk overrides{OverrideTable::Make({}, clock)};
  Refusals refusals{"api"};
  std::unique_ptr<ApiFrontend> door = std::make_unique<ApiFrontend>(
      store, tally, overrides, Admission{}, refusals, PolicyOf(kConfig));
  std::unique_ptr<Service> service = std::make_unique<Service>(*door);
  Late() { service->Start(); }
};

std::string BatchOf(int count) {
  std::string body = R"({"requests":[)";
  for (int i = 0; i < count; ++i) {
    body += (i == 0 ? "" : ",") + std::string(R"({"rule":"r","identity":"a)") + std::to_string(i) +
            R"("})";
  }
  return Post("/v1/decide/batch", body + "]}");
}

// AskBatch's `questions` live in the exchange's memory, which FinishBatch has given back before
// they are destroyed.
TEST(Batch, AnswersInTime) {
  const auto store = NewMemoryStore();
  net::Timers timers;
  Tally tally(timers, {});
  const RealClock clock;
  const OverrideDesk overrides{OverrideTable::Make({}, clock)};
  Refusals refusals("api");
  ApiFrontend door(*store, tally, overrides, Admission{}, refusals, PolicyOf(kConfig));
  Service service(door);
  service.Start();
  Client client(service.port());
  for (const int count : {1, 8, 64, 256}) {
    client.Send(BatchOf(count));
    EXPECT_EQ(client.Receive("]}\n").substr(0, 15), "HTTP/1.1 200 OK") << count;
  }
}

TEST(Batch, AnswersLater) {
  Late late;
  Client client(late.service->port());
  client.Send(BatchOf(256));
  AwaitHeld(late.store, 256);
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  EXPECT_EQ(client.Receive("]}\n").substr(0, 15), "HTTP/1.1 200 OK");
}

// Every source of an identity is compared with all before it.
TEST(Question, ManySourcesTakeLinearTime) {
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

// A store that answers B's call inside Start of A's: A's finished, not yet sent answers lie in
// the reactor's one buffer and go to B.
TEST(LateStore, AnAnswerGoesToWhoAsked) {
  Late late;
  Client b(late.service->port());
  b.Send(kDecide);
  AwaitHeld(late.store, 1);
  late.store.mode = LateStore::Mode::kFailsAllOnStart;
  Client a(late.service->port());
  a.Send("GET /secret-of-a HTTP/1.1\r\nHost: x\r\n\r\n" + kDecide);
  const std::string to_b = b.Receive("\"rules\":", 1s);
  const std::string to_a = a.Receive("404 Not Found", 1s);
  EXPECT_EQ(to_b.find("404 Not Found"), std::string::npos) << to_b;
  EXPECT_NE(to_a.find("404 Not Found"), std::string::npos) << to_a;
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
}

// The same when B has gone: its end clears the buffer, with A's answer in it.
TEST(LateStore, AGoneClientTakesNoOthersAnswerAway) {
  Late late;
  Client b(late.service->port());
  b.Send(kDecide);
  AwaitHeld(late.store, 1);
  // The socket is closed only when the loop tries to write or read: make the connection close.
  b.Abort();
  AwaitRounds(late.service->reactor());
  late.store.mode = LateStore::Mode::kFailsAllOnStart;
  Client a(late.service->port());
  a.Send("GET /secret-of-a HTTP/1.1\r\nHost: x\r\n\r\n" + kDecide);
  EXPECT_NE(a.Receive("404 Not Found", 1s).find("404 Not Found"), std::string::npos);
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
}

TEST(LateStore, AClientThatHasGoneDoesNoHarm) {
  Late late;
  {
    Client client(late.service->port());
    client.Send(kDecide + kDecide);
    AwaitHeld(late.store, 1);
    client.Abort();
  }
  AwaitRounds(late.service->reactor());
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  for (int i = 0; i < 100 && late.service->listener().stats().open != 0; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(late.service->listener().stats().open, 0u);
}

TEST(LateStore, AHalfClosedClientGetsItsAnswer) {
  Late late;
  Client client(late.service->port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  ::shutdown(client.fd(), SHUT_WR);
  AwaitRounds(late.service->reactor());
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  EXPECT_NE(client.Receive("]}\n").find("200 OK"), std::string::npos);
}

TEST(LateStore, AReloadMeanwhileDoesNoHarm) {
  Late late;
  Client client(late.service->port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  RunOn(late.service->reactor(), [&] { late.door->Use(PolicyOf("rules: []")); });
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  EXPECT_NE(client.Receive("]}\n").find("\"rule\":\"r\""), std::string::npos);
}

TEST(LateStore, DrainWaitsForCallsUnderWay) {
  Late late;
  Client client(late.service->port());
  client.Send(kDecide);
  AwaitHeld(late.store, 1);
  std::promise<void> drained;
  auto done = drained.get_future();
  RunOn(late.service->reactor(),
        [&] { late.service->listener().Drain([&] { drained.set_value(); }); });
  EXPECT_EQ(done.wait_for(300ms), std::future_status::timeout);
  RunOn(late.service->reactor(), [&] { late.store.FinishAll(); });
  // An answer that was begun before the drain should say that it is the last one.
  EXPECT_NE(client.Receive("]}\n").find("Connection: close"), std::string::npos);
  EXPECT_EQ(done.wait_for(3s), std::future_status::ready);
}

}  // namespace
}  // namespace tidegate::service

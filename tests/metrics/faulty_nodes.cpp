// SPDX-License-Identifier: Apache-2.0
#include "metrics/faulty_nodes.hpp"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>

#include "net/descriptor.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::metrics_test {
namespace {

using namespace std::chrono_literals;
using redis_test::Node;

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";
constexpr std::size_t kGatewayConnections = 64;
constexpr redis_test::Fault kSlowly{.kind = redis_test::Fault::Kind::kDelayReplies, .delay = 60ms};

/// Rules with every failure policy, in shadow and enforce mode. The limit of `tight` is used up at
/// once; `many` is for random keys. Requests name these rules, and no gateway request matches them.
constexpr std::string_view kRules = R"(rules:
  - { id: open, match: { path: /by-name/** }, per: header:x-user, limit: 1000/s, on_failure: open }
  - { id: closed, match: { path: /by-name/** }, per: header:x-user, limit: 1000/s, on_failure: closed }
  - { id: local, match: { path: /by-name/** }, per: header:x-user, limit: 50/s, on_failure: local }
  - { id: watched, match: { path: /by-name/** }, per: header:x-user, limit: 1/s, mode: shadow, on_failure: open }
  - { id: tight, match: { path: /by-name/** }, per: header:x-user, limit: 2/h, on_failure: local }
  - { id: many, match: { path: /by-name/** }, per: header:x-user, limit: 5/h, on_failure: open }
  - { id: log, match: { path: /by-name/** }, per: header:x-user, limit: 5/h, algorithm: sliding_log, on_failure: open }
)";

std::string InRedis(int port, std::string_view key, std::string_view deadline) {
  return "store: { url: \"redis://127.0.0.1:" + std::to_string(port) +
         "\", on_failure: local, deadline: " + std::string(deadline) +
         " }\nidentity: { hmac_key: " + std::string(key) + " }\n" + std::string(kRules);
}

std::string Question(std::string_view rule, std::string_view identity) {
  return "{\"rule\":\"" + std::string(rule) + "\",\"identity\":\"" + std::string(identity) + "\"}";
}

/// Returns a load in which six of ten requests are for one key; the others are for every rule.
redis_test::Load::Next OneHotKey() {
  return [turn = 0U](std::uint32_t, const redis_test::Record*,
                     redis_test::LoadRequest& question) mutable {
    static constexpr std::string_view kOthers[] = {"closed", "local", "watched", "tight"};
    const unsigned now = turn++;
    question.key = now % 10;
    question.body = question.key < 6
                        ? Question("open", "hot")
                        : Question(kOthers[question.key - 6], "u" + std::to_string(now / 10 % 20));
  };
}

net::Descriptor Connect(int port) {
  net::Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  (void)connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  return made;
}

/// Calls `act` repeatedly until `is_seen` returns true. Returns false on timeout.
bool Until(const FaultyNodes::Seen& is_seen, const std::function<void()>& act) {
  auto next = std::chrono::steady_clock::now();
  return test::WaitUntil(
      [&] {
        if (std::chrono::steady_clock::now() >= next) {
          act();
          next = std::chrono::steady_clock::now() + 200ms;
        }
        return is_seen();
      },
      15s);
}

}  // namespace

FaultyNodes::FaultyNodes() : proxy_(redis_.port()), gone_(test::FreePort()) {
  std::ofstream(token()) << kToken << '\n';
  const std::string rules(kRules);
  healthy_ = Start("well", rules);
  small_ = Start("small",
                 "store: { max_keys: 1000 }\naccess: { tokens: \"prometheus " +
                     std::string(kToken) + " ask\" }\n" + rules,
                 {.admin = redis_test::ExtraListeners::Admin::kAsksForTokens});
  const std::string limits =
      "limits: { connections: " + std::to_string(kGatewayConnections) + " }\n";
  const std::string gateway =
      "  - { id: gate, match: { path: /fine/** }, per: client_ip, limit: 20/s }\naccess_log: " +
      (folder() / "access.log").string() +
      "\nroutes:\n"
      "  - { id: fine, match: { path: /fine/** }, upstream: fine, rewrite: { prefix: /fine, with: "
      "/ } }\n"
      "  - { id: dead, match: { path: /dead/** }, upstream: dead }\n"
      "upstreams:\n  fine: { targets: \"http://127.0.0.1:" +
      std::to_string(small_->admin()) +
      "\" }\n  dead: { targets: \"http://127.0.0.1:" + std::to_string(gone_) +
      "\", health: { interval: 100ms } }\n";
  front_ =
      Start("front", limits + InRedis(redis_.port(), "an-hmac-key-of-the-fleet", "20ms") + gateway,
            {.gateway = test::FreePort()});
  proxy_.Set(kSlowly);
  slow_ = Start("slow", InRedis(proxy_.port(), "another-key-than-that-one", "200ms"));
  orphan_ = Start("orphan", InRedis(lost_.port(), "an-hmac-key-of-the-fleet", "20ms"));
  // The load does not include `small`: its keys recover at once, and would make room there as long
  // as the load continues.
  busy_ = std::make_unique<redis_test::Load>(
      redis_test::Load::Options{
          .ports = {front_->api(), slow_->api(), orphan_->api()}, .connections = 8, .rate = 300},
      OneHotKey());
  calm_ = std::make_unique<redis_test::Load>(
      redis_test::Load::Options{.ports = {healthy_->api()}, .connections = 4, .rate = 80},
      redis_test::DecideInTurn("open", 1000));
  gateway_clients_ = std::thread([this] { AskGateway(); });
  lost_.Kill();
}

FaultyNodes::~FaultyNodes() {
  stop_ = true;
  gateway_clients_.join();
}

std::unique_ptr<Node> FaultyNodes::Start(const std::string& name, const std::string& yaml,
                                         redis_test::ExtraListeners listeners) const {
  return std::make_unique<Node>(folder(), name, yaml, 1, 0, listeners);
}

void FaultyNodes::AskGateway() {
  while (!stop_) {
    (void)redis_test::Fetch(front_->gateway(), "/fine/healthz");
    (void)redis_test::Fetch(front_->gateway(), "/dead/x");
    std::this_thread::sleep_for(20ms);
  }
}

std::string FaultyNodes::Instance(const Node& node) {
  return "127.0.0.1:" + std::to_string(node.admin());
}

std::vector<std::string> FaultyNodes::Targets() const {
  std::vector<std::string> targets = {"127.0.0.1:" + std::to_string(gone_)};
  for (const auto* const node : {&front_, &slow_, &orphan_, &small_, &healthy_}) {
    targets.push_back(Instance(**node));
  }
  return targets;
}

bool FaultyNodes::Overflow(const Seen& is_seen) {
  return Until(is_seen, [&] {
    for (const std::string_view rule : {"many", "log"}) {
      std::string batch = "{\"requests\":[";
      for (int i = 0; i < 256; ++i) {
        batch += (i == 0 ? "" : ",") + Question(rule, "made-up-" + std::to_string(fresh_++));
      }
      (void)redis_test::Ask(small_->api(), "/v1/decide/batch", batch + "]}");
    }
  });
}

bool FaultyNodes::FillQueue(const Seen& is_seen) {
  return Until(is_seen, [&] {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      std::string batch = "{\"requests\":[";
      for (int i = 0; i < 256; ++i) {
        batch += (i == 0 ? "" : ",") + Question("open", "queued-" + std::to_string(fresh_++));
      }
      threads.emplace_back([this, batch = batch + "]}"] {
        (void)redis_test::Ask(slow_->api(), "/v1/decide/batch", batch);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

bool FaultyNodes::OverloadGateway(const Seen& is_seen) {
  std::vector<net::Descriptor> crowd;
  return Until(is_seen, [&] {
    crowd.clear();
    for (std::size_t i = 0; i < kGatewayConnections + 10; ++i) {
      crowd.push_back(Connect(front_->gateway()));
    }
  });
}

bool FaultyNodes::Corrupt(const Seen& is_seen) {
  auto client = redis_.Connect();
  return Until(is_seen, [&] {
    const redis_test::Reply keys = client.Command({"KEYS", "tg:tb:*"});
    for (std::size_t i = 0; keys && i < keys->elements; ++i) {
      const std::string key(keys->element[i]->str, keys->element[i]->len);
      if (key.starts_with("tg:tb:closed:")) client.Text({"SET", key, "banana"});
      // A time in the year 2100.
      if (key.starts_with("tg:tb:open:")) {
        client.Text({"HSET", key, "last_refill", "4102444800000000"});
      }
    }
  });
}

bool FaultyNodes::RefuseReload(const Seen& is_seen) {
  std::ofstream(front_->file()) << "rules: [ { id: broken } ]\n";
  return test::WaitUntil(is_seen, 15s);
}

bool FaultyNodes::ExhaustMemory(const Seen& is_seen) {
  redis_.Text({"CONFIG", "SET", "maxmemory", "1"});
  const bool seen = test::WaitUntil(is_seen, 15s);
  redis_.Text({"CONFIG", "SET", "maxmemory", "0"});
  return seen;
}

bool FaultyNodes::CorruptReplies(const Seen& is_seen) {
  proxy_.Set({.kind = redis_test::Fault::Kind::kGarble, .share = 0.3});
  const bool seen = test::WaitUntil(is_seen, 15s);
  proxy_.Set(kSlowly);
  return seen;
}

bool FaultyNodes::Outage(const Seen& is_seen) {
  redis_.Signal(SIGSTOP);
  (void)test::WaitUntil(
      [&] { return front_->Metric("tidegate_failures_total", "reason=\"timeout\"") > 0; });
  redis_.Kill();
  const bool seen = test::WaitUntil(is_seen, 15s);
  redis_.Start();
  return seen;
}

bool FaultyNodes::TakeDescriptors(const Seen& is_seen) {
  const auto most = static_cast<rlim_t>(small_->Descriptors()) + 3;
  const rlimit limit{most, most};
  return prlimit(small_->pid(), RLIMIT_NOFILE, &limit, nullptr) == 0 &&
         test::WaitUntil(is_seen, 15s);
}

bool FaultyNodes::Change(const Seen& is_seen) {
  const auto key = [](std::string_view identity, std::string_view more) {
    return R"({"rule":"open","identity":")" + std::string(identity) + "\"," + std::string(more) +
           "}";
  };
  return Until(is_seen, [&] {
    (void)redis_test::Ask(front_->admin(), "/v1/ban", key("banned", R"("ttl":"1h")"));
    (void)redis_test::Ask(front_->admin(), "/v1/allow", key("allowed", R"("ttl":"1h")"));
    (void)redis_test::Ask(front_->admin(), "/v1/override",
                          key("special", R"("limit":"5/s","ttl":"1h")"));
    (void)front_->Decide(Question("open", "banned"));
    (void)front_->Decide(Question("open", "allowed"));
  });
}

}  // namespace tidegate::metrics_test

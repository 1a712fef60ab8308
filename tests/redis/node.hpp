// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "limiter/redis_store.hpp"
#include "net/reactor.hpp"
#include "redis/redis_server.hpp"
#include "store/store.hpp"

namespace tidegate::redis_test {

/// The input of a call, with everything that the call refers to, and its result.
struct CallResult {
  std::vector<Charge> charges;
  Call::Kind kind = Call::Kind::kApply;
  RefundRequest refund = {};
  // Results, which Node::Ask fills in:
  std::vector<Decision> decisions = {};
  bool allowed = false;
  Applied applied = Applied::kNo;
  std::optional<Error> error = {};
};

/// A node of a fleet that runs in the test's process, with one reactor.
class Node {
 public:
  explicit Node(RedisStore::Options options) : reactor_(Durations()), local_(NewMemoryStore()) {
    redis_store_ = std::make_unique<RedisStore>(reactor_, std::move(options), *local_);
    thread_ = std::thread([this] { reactor_.Run(std::nullopt); });
    reactor_.Post([this] { redis_store_->Connect(); });
  }
  ~Node() {
    reactor_.Post([this] {
      redis_store_->Shutdown();
      reactor_.Stop();
    });
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  static RedisStore::Options To(const RedisServer& redis) { return To(redis.port()); }
  static RedisStore::Options To(int port) {
    RedisStore::Options options;
    options.redis.url.hosts = {{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)}};
    // A long deadline: the machine may be busy, and most tests do not depend on time.
    options.redis.deadline = std::chrono::seconds{5};
    return options;
  }

  /// Starts all calls in one round and waits until they are finished.
  void Ask(std::vector<CallResult>& all) {
    std::promise<void> done;
    std::atomic<std::size_t> open = all.size();
    std::vector<std::unique_ptr<Pending>> pending;
    for (CallResult& result : all) pending.push_back(std::make_unique<Pending>(result, open, done));
    reactor_.Post([&] {
      for (auto& each : pending) redis_store_->Start(*each);
    });
    done.get_future().wait();
  }
  CallResult Ask(CallResult result) {
    std::vector<CallResult> one{std::move(result)};
    Ask(one);
    return std::move(one[0]);
  }
  CallResult Apply(const Charge& charge) { return Ask({.charges = {charge}}); }

  /// Runs `task` on the reactor's thread and waits until it returns.
  void Run(const std::function<void(RedisStore&)>& task) {
    std::promise<void> done;
    reactor_.Post([&] {
      task(*redis_store_);
      done.set_value();
    });
    done.get_future().wait();
  }
  void WaitUntilReady() {
    bool ready = false;
    while (!ready) Run([&](RedisStore& redis_store) { ready = redis_store.client().ready(); });
  }
  [[nodiscard]] const RedisStore& redis_store() const { return *redis_store_; }
  [[nodiscard]] net::Reactor& reactor() { return reactor_; }

 private:
  struct Pending : Call {
    Pending(CallResult& of, std::atomic<std::size_t>& left, std::promise<void>& last)
        : result(of), open(left), done(last) {
      kind = result.kind;
      result.decisions.resize(result.charges.size());
      charges = result.charges;
      decisions = result.decisions;
      refund = result.refund;
      finished = [](Call& call) noexcept {
        auto& mine = static_cast<Pending&>(call);
        mine.result.allowed = mine.allowed;
        mine.result.applied = call.applied;
        mine.result.error = mine.error;
        if (--mine.open == 0) mine.done.set_value();
      };
    }
    CallResult& result;
    std::atomic<std::size_t>& open;
    std::promise<void>& done;
  };

  static net::Deadlines::Durations Durations() {
    net::Deadlines::Durations durations;
    durations.fill(std::chrono::seconds{1});
    return durations;
  }

  net::Reactor reactor_;
  std::unique_ptr<Store> local_;
  std::unique_ptr<RedisStore> redis_store_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "limiter/guard.hpp"
#include "net/reactor.hpp"
#include "redis/redis_server.hpp"
#include "tidegate/store.hpp"

namespace tidegate::redis_test {

/// One call with everything that it points at, and its answer.
struct Asked {
  std::vector<Charge> charges;
  Call::Kind kind = Call::Kind::kApply;
  Refund refund = {};
  // Filled:
  std::vector<Decision> decisions = {};
  bool allowed = false;
  Done done = Done::kNothing;
  std::optional<Error> error = {};
};

/// A node of a fleet, with one reactor, in the test's process.
class Node {
 public:
  explicit Node(Guard::Options options) : reactor_(Durations()), local_(NewMemoryStore()) {
    guard_ = std::make_unique<Guard>(reactor_, std::move(options), *local_);
    thread_ = std::thread([this] { reactor_.Run(std::nullopt); });
    reactor_.Post([this] { guard_->Connect(); });
  }
  ~Node() {
    reactor_.Post([this] {
      guard_->Shutdown();
      reactor_.Stop();
    });
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  static Guard::Options To(const RedisServer& redis) { return To(redis.port()); }
  static Guard::Options To(int port) {
    Guard::Options options;
    options.redis.url.hosts = {{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)}};
    // The machine may be busy, and most tests are not about time.
    options.redis.deadline = std::chrono::seconds{5};
    return options;
  }

  /// Starts all of them in one round and waits for the answers.
  void Ask(std::vector<Asked>& all) {
    std::promise<void> done;
    std::atomic<std::size_t> open = all.size();
    std::vector<std::unique_ptr<Pending>> pending;
    for (Asked& asked : all) pending.push_back(std::make_unique<Pending>(asked, open, done));
    reactor_.Post([&] {
      for (auto& each : pending) guard_->Start(*each);
    });
    done.get_future().wait();
  }
  Asked Ask(Asked asked) {
    std::vector<Asked> one{std::move(asked)};
    Ask(one);
    return std::move(one[0]);
  }
  Asked Apply(const Charge& charge) { return Ask({.charges = {charge}}); }

  /// Runs on the reactor's thread and waits for it.
  void Run(const std::function<void(Guard&)>& task) {
    std::promise<void> done;
    reactor_.Post([&] {
      task(*guard_);
      done.set_value();
    });
    done.get_future().wait();
  }
  void WaitUntilReady() {
    bool ready = false;
    while (!ready) Run([&](Guard& guard) { ready = guard.client().ready(); });
  }
  [[nodiscard]] const Guard& guard() const { return *guard_; }
  [[nodiscard]] net::Reactor& reactor() { return reactor_; }

 private:
  struct Pending : Call {
    Pending(Asked& of, std::atomic<std::size_t>& left, std::promise<void>& last)
        : asked(of), open(left), done(last) {
      kind = asked.kind;
      asked.decisions.resize(asked.charges.size());
      charges = asked.charges;
      decisions = asked.decisions;
      refund = asked.refund;
      finished = [](Call& call) noexcept {
        auto& mine = static_cast<Pending&>(call);
        mine.asked.allowed = mine.allowed;
        mine.asked.done = call.done;
        mine.asked.error = mine.error;
        if (--mine.open == 0) mine.done.set_value();
      };
    }
    Asked& asked;
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
  std::unique_ptr<Guard> guard_;
  std::thread thread_;
};

}  // namespace tidegate::redis_test

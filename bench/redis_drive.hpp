// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "limiter/redis_store.hpp"
#include "net/reactor.hpp"
#include "redis_draws.hpp"
#include "store/store.hpp"

namespace tidegate::bench {

/// A RedisStore as a server has it: on a reactor, with a thread and a core of its own, connected.
class RedisStoreHost {
 public:
  RedisStoreHost(int redis_port, int core);
  /// Waits for so many connections.
  RedisStoreHost(const redis::RedisUrl& url, int core, std::size_t nodes);
  ~RedisStoreHost();
  RedisStoreHost(const RedisStoreHost&) = delete;
  RedisStoreHost& operator=(const RedisStoreHost&) = delete;

  /// On the reactor's thread only, but for its statistics.
  [[nodiscard]] RedisStore& redis_store() noexcept { return redis_store_; }
  [[nodiscard]] net::Reactor& reactor() noexcept { return reactor_; }
  /// Runs `task` on the reactor's thread and waits for it.
  void Do(const std::function<void()>& task);

 private:
  std::unique_ptr<Store> local_ = NewMemoryStore();
  net::Reactor reactor_;
  RedisStore redis_store_;
  std::thread thread_;
};

/// One request for one key, with its memory. Used again and again.
struct Question : Call {
  Charge charge;
  Decision decision;
  void* owner = nullptr;
  std::chrono::steady_clock::time_point intended;

  /// `on_finished`: must not start another one; that would not end where answers come at once.
  Question(void* of, void (*on_finished)(Call&) noexcept) : owner(of) {
    charges = {&charge, 1};
    decisions = {&decision, 1};
    finished = on_finished;
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  void Name(const std::string& identity, const Quota& quota) {
    charge = {.rule = "per-key", .identity = identity, .quota = &quota};
    error.reset();
  }
  /// Answered by Redis or from what it said; else a failure policy spoke.
  [[nodiscard]] bool exact() const noexcept {
    return !error &&
           (decision.decided_by == DecidedBy::kStore || decision.decided_by == DecidedBy::kCache);
  }
};

/// Questions that are each followed by the next: so many are under way at any time. What was
/// finished within a round of the reactor is started again at its end, all at once.
class ClosedLoop final : private net::Watcher {
 public:
  struct Load {
    Draws* draws;
    const Quota* quota;
    std::size_t concurrent;
    double seconds;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< Ends it sooner.
  };
  struct Outcome {
    std::uint64_t decisions = 0;
    std::uint64_t allowed = 0;
    std::uint64_t inexact = 0;  ///< Answered by a failure policy: what is measured is not ours.
    double seconds = 0;
  };

  /// Both outlive this.
  ClosedLoop(RedisStoreHost& host, const std::vector<std::string>& identities)
      : host_(host), identities_(identities) {}

  Outcome Run(const Load& load) {
    Begin(load);
    return Wait();
  }
  void Begin(const Load& load);
  /// Until it has ended and the last one is answered.
  Outcome Wait() { return done_.get(); }

 private:
  void OnReady(std::uint32_t events) override;
  void StartAll();

  RedisStoreHost& host_;
  const std::vector<std::string>& identities_;
  std::vector<std::unique_ptr<Question>> questions_;
  std::vector<Question*> finished_;
  std::vector<Question*> starting_;
  Load load_{};
  std::size_t under_way_ = 0;
  std::uint64_t started_ = 0;
  std::chrono::steady_clock::time_point begun_;
  Outcome outcome_;
  std::promise<Outcome> promise_;
  std::future<Outcome> done_;
};

}  // namespace tidegate::bench

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

/// A connected RedisStore as in a server: on a reactor with its own thread and core.
class RedisStoreHost {
 public:
  RedisStoreHost(int redis_port, int core);
  /// Waits until `nodes` connections are open.
  RedisStoreHost(const redis::RedisUrl& url, int core, std::size_t nodes);
  ~RedisStoreHost();
  RedisStoreHost(const RedisStoreHost&) = delete;
  RedisStoreHost& operator=(const RedisStoreHost&) = delete;

  /// May be used on the reactor's thread only, except for its statistics.
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

/// One request for one key, with its memory. It can be used repeatedly.
struct Question : Call {
  Charge charge;
  Decision decision;
  void* owner = nullptr;
  std::chrono::steady_clock::time_point intended;

  /// `on_finished` must not start another request: that would recurse without end where decisions
  /// are made at once.
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
  /// Returns true if Redis decided, or the denial cache; false if a failure policy decided.
  [[nodiscard]] bool exact() const noexcept {
    return !error &&
           (decision.decided_by == DecidedBy::kStore || decision.decided_by == DecidedBy::kCache);
  }
};

/// Keeps a fixed number of requests pending: each is followed by the next one. Requests that
/// finished within one round of the reactor are started again at its end, all at once.
class ClosedLoop final : private net::Watcher {
 public:
  struct Load {
    Draws* draws;
    const Quota* quota;
    std::size_t concurrent;
    double seconds;
    /// Number of requests after which the run ends, even before its time is over.
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  };
  struct Outcome {
    std::uint64_t decisions = 0;
    std::uint64_t allowed = 0;
    std::uint64_t inexact = 0;  ///< Requests that a failure policy decided: their cost is not that
                                ///< of the store.
    double seconds = 0;
  };

  /// REQUIRES: both arguments outlive this object.
  ClosedLoop(RedisStoreHost& host, const std::vector<std::string>& identities)
      : host_(host), identities_(identities) {}

  Outcome Run(const Load& load) {
    Begin(load);
    return Wait();
  }
  void Begin(const Load& load);
  /// Waits until the run has ended and the last request is decided.
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

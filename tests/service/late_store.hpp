// SPDX-License-Identifier: Apache-2.0
// A store that answers its calls when the test says so, and a decision pipeline on this store
// without a server.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "decision/pipeline.hpp"
#include "net/reactor.hpp"
#include "server/snapshot_compiler.hpp"
#include "store/store.hpp"
#include "support/wait.hpp"

namespace tidegate::service {

/// Returns the compiled snapshot of a configuration.
inline std::shared_ptr<const Snapshot> SnapshotOf(std::string_view yaml) {
  ConfigReading reading = ParseConfig(yaml);
  for (const Problem& problem : reading.problems) {
    EXPECT_NE(problem.severity, Problem::Severity::kError) << problem.Text("test") << "\n" << yaml;
  }
  const Config& config = reading.config.value();
  return SnapshotCompiler(config, std::string(64, 'k')).Compile(config, reading.problems);
}

/// A store that holds its calls until FinishAll, like a store behind a network. Used on one thread,
/// except for `mode` and `held`.
class LateStore final : public AsyncStore {
 public:
  enum class Mode { kLate, kFailsAllOnStart };
  std::atomic<Mode> mode{Mode::kLate};
  std::atomic<std::size_t> held{0};

  void Start(Call& call) noexcept override {
    // Simulates a write that finds the connection broken: all waiting calls fail before the new one
    // starts.
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
  /// Returns the store that makes the decisions.
  [[nodiscard]] Store& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<Store> inner_ = NewMemoryStore();
  std::deque<Call*> calls_;
};

/// A decision pipeline on a LateStore.
struct LatePipeline {
  explicit LatePipeline(std::string_view yaml)
      : pipeline(store, metrics, SnapshotOf(yaml), OverrideTable::Make({}, clock)) {}

  LateStore store;
  net::Timers timers;
  DecisionMetrics metrics{timers, {}};
  const RealClock clock;
  DecisionPipeline pipeline;
};

/// Runs `task` on the reactor's thread and waits until it returns.
inline void RunOn(net::Reactor& reactor, const std::function<void()>& task) {
  std::promise<void> done;
  reactor.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

/// Waits until the reactor has handled all events that happened before this call.
inline void AwaitRounds(net::Reactor& reactor) {
  for (int i = 0; i < 2; ++i) RunOn(reactor, [] {});
}

inline void AwaitHeld(const LateStore& store, std::size_t count) {
  ASSERT_TRUE(test::WaitUntil([&] { return store.held == count; })) << store.held;
}

}  // namespace tidegate::service

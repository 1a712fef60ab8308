// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench_wire.hpp"
#include "cli/dial.hpp"
#include "cli/draw.hpp"
#include "cli/latency_record.hpp"

namespace tidegate::cli {

/// What came of a load.
struct BenchTally {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;  ///< Questions without an answer, and connections that did not come up.
  std::map<int, std::uint64_t> statuses = {};
  std::map<std::string, std::uint64_t, std::less<>> sources = {};
  LatencyRecord latency = {};
  std::string mistake = {};  ///< Not empty: why the server will answer no question of this kind.
  std::string trouble = {};  ///< The first of `errors`.

  [[nodiscard]] std::uint64_t decisions() const noexcept { return allowed + denied; }
  void Merge(const BenchTally& other);
};

/// One thread's connections. Each sends as many questions as the pipeline holds, and a new one for
/// each answer; or all together send so many a second, and how long one took is counted from when
/// it was due: a server that stalls does not hide it by keeping us from asking.
class BenchLoad {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    explicit Options(const Draw& which) : draw(which) {}

    ServerAddress server = {};
    Patience patience = {};
    std::function<std::unique_ptr<BenchWire>()> make_wire = {};
    std::function<std::string(std::uint64_t)> identity = {};  ///< The name of the n-th.
    Draw draw;
    int connections = 1;
    int pipeline = 1;
    double rate = 0;  ///< A second; 0: as many as are answered.
  };

  BenchLoad(Options options, const std::atomic<bool>& stop);
  ~BenchLoad();
  BenchLoad(const BenchLoad&) = delete;
  BenchLoad& operator=(const BenchLoad&) = delete;

  /// Until `end`, or until stopped, or a mistake; then waits for what is under way.
  void Run(Clock::time_point end);

  [[nodiscard]] const BenchTally& tally() const noexcept { return tally_; }
  /// So far; of any thread.
  [[nodiscard]] std::uint64_t answered() const noexcept {
    return answered_.load(std::memory_order_relaxed);
  }

 private:
  struct Connection;

  void Open(Connection& connection, Clock::time_point now);
  void Break(Connection& connection, const std::string& why);
  void Ask(Connection& connection, Clock::time_point due);
  void Fill(Connection& connection);
  void FillByRate(Clock::time_point now);
  void Flush(Connection& connection);
  void OnReadable(Connection& connection);
  void Note(const BenchAnswer& answer);
  void Wait(Clock::time_point until);
  void Reopen(Clock::time_point now);

  Options options_;
  const std::atomic<bool>& stop_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  BenchTally tally_;
  std::atomic<std::uint64_t> answered_{0};
  std::size_t under_way_ = 0;
  std::size_t next_ = 0;  ///< Whose turn it is, by rate.
  bool sending_ = true;
  Clock::time_point due_;
  std::string chunk_;
};

}  // namespace tidegate::cli

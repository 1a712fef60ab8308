// SPDX-License-Identifier: Apache-2.0
// Compares the cost of decisions that Redis clients request with the cost of an INCR in Redis
// itself, in one run. The servers run on one core, and redis-benchmark on another core sends
// commands to them in turns. Usage: resp_bench TIDEGATE [--quick] [ROW...]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "redis/redis_server.hpp"
#include "resp_contest.hpp"
#include "rounds.hpp"
#include "support/files.hpp"

namespace tidegate::bench {
namespace {

constexpr int kServerCore = 0;
constexpr int kLoadCore = 1;

class RespBench {
 public:
  explicit RespBench(BenchOptions options) : options_(std::move(options)) {}

  /// Runs all rows. Returns true if all ratios are within their bars.
  bool Run() {
    const RespLoad pipelined{.pipeline = 32,
                             .connections = 20,
                             .commands = options_.quick ? 160'000u : 320'000u,
                             .core = kLoadCore};
    const RespLoad single{.pipeline = 1,
                          .connections = 50,
                          .commands = options_.quick ? 10'000u : 30'000u,
                          .core = kLoadCore};
    std::printf("CPU time per command, medians of rounds in turn; 100,000 keys\n");
    std::printf("%-12s %-49s %9s %9s %8s\n", "", "", "ours, us", "Redis, us", "ratio");
    const std::vector<std::string> throttle = {
        "CL.THROTTLE", "key:__rand_int__", "100", "1000", "1", "1"};
    Compare("pipelined", "CL.THROTTLE, 20 connections, 32 in a pipeline", throttle, "0 101 ",
            pipelined, 1);
    // Of the next two rows, the second runs without the threads that keep cores awake. At this load
    // neither side is always busy, and each time a server sleeps, such a thread runs and slows the
    // server's next wakeup. Both rows are reported.
    Compare("single-awake", "the next, while both cores are kept awake", throttle, "0 101 ", single,
            std::nullopt);
    awake_.reset();
    Compare("single", "CL.THROTTLE, 50 connections, one by one", throttle, "0 101 ", single, 1);
    awake_.emplace({kServerCore, kLoadCore});
    Compare("rule", "TG.DECIDE of a rule, 32 in a pipeline",
            {"TG.DECIDE", "per-key", "key:__rand_int__"}, "", pipelined, std::nullopt);
    // One command is allowed, and all others are denied for 100 days.
    Compare("denied", "CL.THROTTLE on one key, denied, 32 in a pipeline",
            {"CL.THROTTLE", "hot", "0", "1", "8640000", "1"}, "1 1 0 ", pipelined, std::nullopt);
    return held_;
  }

 private:
  /// `begin`: expected beginning of Tidegate's reply, as text.
  void Compare(const char* name, const char* what, std::vector<std::string> command,
               const std::string& begin, const RespLoad& load, std::optional<double> bar);

  [[nodiscard]] std::vector<std::string> TidegateCommand() const {
    const std::string file = folder_.path() / "tidegate.yaml";
    std::ofstream(file) << "listen: {resp: \"127.0.0.1:" << port_
                        << "\", api: \"off\", admin: \"off\"}\n"
                           "rules: [{id: per-key, per: header:x-key, limit: 1000000/s}]\n";
    return {options_.tidegate, "serve", "--config", file, "--threads", "1"};
  }

  const BenchOptions options_;
  bool held_ = true;
  const int port_ = FreePort();
  test::TemporaryFolder folder_;
  std::optional<AwakeCores> awake_{std::in_place, {kServerCore, kLoadCore}};
  redis_test::RedisServer redis_{{.core = kServerCore}};
  Child tidegate_{TidegateCommand(), kServerCore};
};

void RespBench::Compare(const char* name, const char* what, std::vector<std::string> command,
                        const std::string& begin, const RespLoad& load, std::optional<double> bar) {
  if (!options_.Wants(name)) return;
  if (!WaitForPort(port_)) throw std::runtime_error("tidegate did not start");
  RespSide ours{.name = "tidegate",
                .port = port_,
                .cpu_seconds = [this] { return tidegate_.CpuSeconds(); },
                .command = std::move(command),
                .good =
                    [&begin](const std::string& answer) {
                      return !answer.starts_with("(error)") && answer.starts_with(begin);
                    }};
  RespSide theirs{.name = "redis-server",
                  .port = redis_.port(),
                  .cpu_seconds = [this] { return redis_.CpuSeconds(); },
                  .command = {"INCR", "key:__rand_int__"},
                  .good = [](const std::string& answer) { return !answer.starts_with("(error)"); }};
  RunRespContest(name, {&ours, &theirs}, load, options_.quick ? 9 : 31);
  const double ratio = MedianRatio(ours.micros, theirs.micros);
  std::printf("%-12s %-49s %9.3f %9.3f %7.2fx", name, what, MedianOf(ours.micros),
              MedianOf(theirs.micros), ratio);
  if (bar) {
    held_ = held_ && ratio <= *bar;
    std::printf("  (<= %.2fx) %s", *bar, ratio <= *bar ? "holds" : "MISSED");
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    BenchOptions options = BenchOptions::Parse("resp_bench", argc, argv);
    PinTo(kLoadCore);
    return RespBench(std::move(options)).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resp_bench: %s\n", error.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
// What counters, hot keys and latency cost per decision: two servers of one binary, one that counts
// and one that does not, on one core, asked in turns from another.
// Usage: metrics_bench TIDEGATE [--quick] [ROW...]
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "http_client.hpp"
#include "http_contest.hpp"
#include "http_load.hpp"
#include "http_upstream.hpp"
#include "pipeline_load.hpp"
#include "redis_draws.hpp"
#include "rounds.hpp"

namespace tidegate::bench {
namespace {

constexpr double kBar = 1.03;
constexpr std::size_t kMostBytes = 1'000'000;
constexpr double kMostSeconds = 0.05;

/// One server with all doors, and what it is asked.
class Side {
 public:
  Side(const std::string& tidegate, const Folder& folder, int upstream, const std::string& metrics)
      : server_(
            {tidegate, "serve", "--config", Config(folder, upstream, metrics), "--threads", "1"},
            kServerCore) {
    if (!WaitForPort(resp_) || !WaitForPort(gateway_)) {
      throw std::runtime_error("tidegate did not start");
    }
  }

  void UseResp(Draws draws) {
    load_ = [this,
             load = std::make_shared<PipelineLoad>(resp_, 20, [draws](std::string& to) mutable {
               to += "*6\r\n$11\r\nCL.THROTTLE\r\n$10\r\n" + Key(draws.Next()) +
                     "\r\n$3\r\n100\r\n$4\r\n1000\r\n$1\r\n1\r\n$1\r\n1\r\n";
             })](double seconds) { return load->Run(seconds); };
  }
  void UseApi(Draws draws) {
    UseHttp(api_, [draws]() mutable {
      const std::string body = R"({"rule":"per-key","identity":")" + Key(draws.Next()) + "\"}";
      return "POST /v1/decide HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
             "Content-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body;
    });
  }
  void UseGateway(Draws draws) {
    UseHttp(gateway_, [draws]() mutable {
      return "GET / HTTP/1.1\r\nHost: a\r\nX-Key: " + Key(draws.Next()) + "\r\n\r\n";
    });
  }

  void Warm(double seconds) {
    micros_.clear();
    (void)load_(seconds);
  }
  void Round(double seconds) {
    const double before = server_.CpuSeconds();
    const std::uint64_t asked = load_(seconds);
    micros_.push_back((server_.CpuSeconds() - before) * 1e6 / static_cast<double>(asked));
  }
  [[nodiscard]] const std::vector<double>& micros() const { return micros_; }
  [[nodiscard]] int admin() const { return admin_; }

 private:
  static std::string Key(std::uint32_t number) {
    const std::string digits = std::to_string(number);
    return "key" + std::string(7 - digits.size(), '0') + digits;
  }

  [[nodiscard]] std::string Config(const Folder& folder, int upstream,
                                   const std::string& metrics) const {
    const auto at = [](int port) { return "\"127.0.0.1:" + std::to_string(port) + "\""; };
    return folder.Write("tidegate-" + std::to_string(api_) + ".yaml",
                        "listen: {api: " + at(api_) + ", admin: " + at(admin_) +
                            ", resp: " + at(resp_) + ", gateway: " + at(gateway_) +
                            "}\n"
                            "access_log: \"off\"\n"
                            "store: {max_keys: 3000000}\n"
                            "rules: [{id: per-key, per: header:x-key, limit: 1000000000/s}]\n"
                            "routes: [{id: all, upstream: one}]\n"
                            "upstreams: {one: {targets: [\"http://127.0.0.1:" +
                            std::to_string(upstream) + "\"]}}\n" + metrics);
  }

  void UseHttp(int port, std::function<std::string()> next) {
    auto text = std::make_shared<std::string>();
    auto load = std::make_shared<HttpLoad>(
        port, kHttpConnections,
        [text, next = std::move(next)](std::uint64_t) -> const std::string& {
          *text = next();
          return *text;
        });
    load_ = [load](double seconds) {
      const auto outcome = load->Run(seconds);
      if (outcome.ok != outcome.answers) throw std::runtime_error("not all answers were 200");
      return outcome.answers;
    };
  }

  const int api_ = FreePort();
  const int admin_ = FreePort();
  const int resp_ = FreePort();
  const int gateway_ = FreePort();
  Child server_;
  std::function<std::uint64_t(double)> load_;
  std::vector<double> micros_;
};

class MetricsBench {
 public:
  explicit MetricsBench(BenchOptions options) : options_(std::move(options)) {}

  /// Whether all bars hold.
  bool Run() {
    std::printf("CPU time per decision with and without `metrics`, medians of rounds in turn\n");
    std::printf("%-16s %-42s %8s %8s %8s\n", "", "", "on, us", "off, us", "ratio");
    const struct {
      const char* name;
      const char* what;
      void (Side::*use)(Draws);
    } doors[] = {{"resp", "CL.THROTTLE, 20 connections, pipelines of 32", &Side::UseResp},
                 {"http", "POST /v1/decide, 64 connections", &Side::UseApi},
                 {"gateway", "a proxied GET, 64 connections", &Side::UseGateway}};
    const struct {
      const char* name;
      Draws draws;
    } loads[] = {{"hot", Draws::Only(7)},
                 {"zipf", Draws::Zipf(100'000, 1.1)},
                 {"uniform", Draws::Uniform(1'000'000)}};
    for (const auto& door : doors) {
      for (const auto& load : loads) {
        const std::string name = std::string(door.name) + "-" + load.name;
        if (!options_.Wants(name)) continue;
        (on_.*door.use)(load.draws);
        (off_.*door.use)(load.draws);
        Compare(name, door.what);
        if (load.name == std::string_view("uniform")) Scrape();
      }
    }
    return held_;
  }

 private:
  void Compare(const std::string& name, const char* what);
  void Scrape();

  const BenchOptions options_;
  bool held_ = true;
  Folder folder_;
  AwakeCores awake_{kServerCore, kLoadCore};
  HttpUpstream upstream_{kLoadCore};
  Side on_{options_.tidegate, folder_, upstream_.port(), ""};
  Side off_{options_.tidegate, folder_, upstream_.port(),
            "metrics: {decisions: false, hot_keys: 0}\n"};
};

void MetricsBench::Compare(const std::string& name, const char* what) {
  const int rounds = options_.quick ? 15 : 41;
  const double seconds = options_.quick ? 0.15 : 0.25;
  std::vector<Side*> sides = {&on_, &off_};
  for (Side* const side : sides) side->Warm(1);  // Most of a million keys are there then.
  Turns turns(sides.size());
  for (int round = 0; round < rounds; ++round) {
    ShowProgress(name, round, rounds);
    for (const std::size_t i : turns.Next()) sides[i]->Round(seconds);
  }
  const double ratio = MedianRatio(on_.micros(), off_.micros());
  held_ = held_ && ratio <= kBar;
  std::printf("%-16s %-42s %8.3f %8.3f %7.3fx  (<= %.2fx) %s\n", name.c_str(), what,
              MedianOf(on_.micros()), MedianOf(off_.micros()), ratio, kBar,
              ratio <= kBar ? "PASS" : "FAIL");
  std::fflush(stdout);
}

/// With everything counted that came before, and while the last of it is still among the hot.
void MetricsBench::Scrape() {
  HttpClient client(on_.admin());
  const auto began = std::chrono::steady_clock::now();
  const std::string text = client.Ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const bool good = text.size() < kMostBytes && took.count() < kMostSeconds;
  held_ = held_ && good;
  std::printf("%-16s %-42s %8zu bytes %8.2f ms  (< 1 MB, < 50 ms) %s\n", "", "/metrics after it",
              text.size(), took.count() * 1e3, good ? "PASS" : "FAIL");
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    BenchOptions options = BenchOptions::Parse("metrics_bench", argc, argv);
    PinSelf(kLoadCore);
    return MetricsBench(std::move(options)).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "metrics_bench: %s\n", error.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Measures the cost of counters, hot keys and latency histograms per decision: compares two servers
// of one binary, one with metrics and one without. They run on one core, and the load generator on
// another core calls them in turns. Usage: metrics_bench TIDEGATE [--quick] [ROW...]
#include <array>
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
constexpr const char* kOff = "metrics: {decisions: false, hot_keys: 0}\n";
constexpr std::size_t kMostBytes = 1'000'000;
constexpr double kMostSeconds = 0.05;

/// One server with all frontends, and its load.
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
    load_ = [load = std::make_shared<PipelineLoad>(resp_, 20, [draws](std::string& to) mutable {
               to += "*6\r\n$11\r\nCL.THROTTLE\r\n$10\r\n" + Key(draws.Next()) +
                     "\r\n$3\r\n100\r\n$4\r\n1000\r\n$1\r\n1\r\n$1\r\n1\r\n";
             })](double seconds) { return load->Run(seconds); };
  }
  void UseApi(Draws draws) {
    UseHttp(api_, [draws]() mutable {
      const std::string body = R"({"rule":"per-key","identity":")" + Key(draws.Next()) + "\"}";
      return "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body;
    });
  }
  void UseGateway(Draws draws) {
    UseHttp(gateway_, [draws]() mutable {
      return "GET / HTTP/1.1\r\nHost: a\r\nX-Key: " + Key(draws.Next()) + "\r\n\r\n";
    });
  }

  void Warm(double seconds) { (void)load_(seconds); }
  /// Runs one round and returns the CPU time per decision, in microseconds.
  [[nodiscard]] double Round(double seconds) {
    const double before = server_.CpuSeconds();
    const std::uint64_t requests = load_(seconds);
    return (server_.CpuSeconds() - before) * 1e6 / static_cast<double>(requests);
  }
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
      if (outcome.ok != outcome.answers) throw std::runtime_error("not all responses were 200");
      return outcome.answers;
    };
  }

  const int api_ = FreePort();
  const int admin_ = FreePort();
  const int resp_ = FreePort();
  const int gateway_ = FreePort();
  Child server_;
  std::function<std::uint64_t(double)> load_;
};

class MetricsBench {
 public:
  explicit MetricsBench(BenchOptions options) : options_(std::move(options)) {}

  /// Runs all rows. Returns true if all ratios are within their bars.
  bool Run() {
    std::printf("CPU time per decision with and without `metrics`, medians of rounds in turn\n");
    std::printf("%-16s %-46s %8s %8s %8s\n", "", "", "on, us", "off, us", "ratio");
    const struct {
      const char* name;
      const char* what;
      void (Side::*use)(Draws);
    } frontends[] = {{"resp", "CL.THROTTLE, 20 connections, pipelines of 32", &Side::UseResp},
                     {"http", "POST /v1/decide, 64 connections", &Side::UseApi},
                     {"gateway", "a proxied GET, 64 connections", &Side::UseGateway}};
    const struct {
      const char* name;
      Draws draws;
    } loads[] = {{"hot", Draws::Only(7)},
                 {"zipf", Draws::Zipf(100'000, 1.1)},
                 {"uniform", Draws::Uniform(1'000'000)}};
    for (const auto& frontend : frontends) {
      for (const auto& load : loads) {
        const std::string name = std::string(frontend.name) + "-" + load.name;
        if (options_.Wants(name)) Compare(name, frontend.what, frontend.use, load.draws);
      }
    }
    return held_;
  }

 private:
  void Compare(const std::string& name, const char* what, void (Side::*use)(Draws),
               const Draws& draws);
  void Scrape(const Side& side);

  const BenchOptions options_;
  bool held_ = true;
  Folder folder_;
  AwakeCores awake_{kServerCore, kLoadCore};
  HttpUpstream upstream_{kLoadCore};
  Turns turns_{2};
};

void MetricsBench::Compare(const std::string& name, const char* what, void (Side::*use)(Draws),
                           const Draws& draws) {
  // The memory layout of a process makes it faster or slower by some percent for its whole life, so
  // each server is started several times.
  const int lives = options_.quick ? 3 : 10;
  const int rounds = options_.quick ? 30 : 40;
  // Short, because disturbances on a shared machine last longer and so affect both servers equally.
  constexpr double kSeconds = 0.03;
  std::array<std::vector<double>, 2> micros;
  for (int life = 0; life < lives; ++life) {
    ShowProgress(name, life, lives);
    Side on(options_.tidegate, folder_, upstream_.port(), "");
    Side off(options_.tidegate, folder_, upstream_.port(), kOff);
    const std::array<Side*, 2> sides = {&on, &off};
    for (Side* const side : sides) {
      (side->*use)(draws);
      side->Warm(0.5);  // 0.5 s is long enough for the first half million keys.
    }
    for (int round = 0; round < rounds; ++round) {
      for (const std::size_t i : turns_.Next()) micros[i].push_back(sides[i]->Round(kSeconds));
    }
    if (life + 1 == lives && name.ends_with("uniform")) Scrape(on);
  }
  const double ratio = MedianRatio(micros[0], micros[1]);
  held_ = held_ && ratio <= kBar;
  std::printf("%-16s %-46s %8.3f %8.3f %7.3fx  (<= %.2fx) %s\n", name.c_str(), what,
              MedianOf(micros[0]), MedianOf(micros[1]), ratio, kBar,
              ratio <= kBar ? "PASS" : "FAIL");
  std::fflush(stdout);
}

/// Scrapes /metrics while the keys of the load are still among the hot keys.
void MetricsBench::Scrape(const Side& side) {
  HttpClient client(side.admin());
  const auto began = std::chrono::steady_clock::now();
  const std::string text = client.Ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const bool good = text.size() < kMostBytes && took.count() < kMostSeconds;
  held_ = held_ && good;
  std::printf("%-16s %-46s %8zu bytes %5.2f ms  (< 1 MB, < 50 ms) %s\n", "", "/metrics after it",
              text.size(), took.count() * 1e3, good ? "PASS" : "FAIL");
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    BenchOptions options = BenchOptions::Parse("metrics_bench", argc, argv);
    PinTo(kLoadCore);
    return MetricsBench(std::move(options)).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "metrics_bench: %s\n", error.what());
    return 1;
  }
}

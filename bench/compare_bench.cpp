// SPDX-License-Identifier: Apache-2.0
// Compares the CPU time per request of two builds of tidegate, row by row. Both servers run on one
// core, and a load generator on another core sends requests to them in turns.
// Usage: compare_bench TIDEGATE [--quick] OTHER [ROW...]
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "http_contest.hpp"
#include "http_load.hpp"
#include "http_upstream.hpp"
#include "pipeline_load.hpp"
#include "redis/redis_server.hpp"
#include "redis_draws.hpp"
#include "rounds.hpp"

namespace tidegate::bench {
namespace {

constexpr double kBar = 1.03;
constexpr std::uint32_t kKeys = 10'000;

struct Ports {
  int api = FreePort();
  int resp = FreePort();
  int gateway = FreePort();
};

/// Sends requests to a server for `seconds` and returns the number of responses.
using Load = std::function<std::uint64_t(double seconds)>;

struct Row {
  const char* name;
  const char* what;
  std::string yaml;  ///< The configuration without `listen`.
  std::function<Load(const Ports&)> load;
};

std::string KeyName(std::uint32_t number) { return "key" + std::to_string(100'000 + number); }

Load HttpRequests(int port, std::vector<std::string> requests) {
  auto all = std::make_shared<const std::vector<std::string>>(std::move(requests));
  auto load = std::make_shared<HttpLoad>(
      port, kHttpConnections,
      [all](std::uint64_t i) -> const std::string& { return (*all)[i % all->size()]; });
  return [load](double seconds) {
    const auto outcome = load->Run(seconds);
    if (outcome.ok != outcome.answers) throw std::runtime_error("not all responses were 200");
    return outcome.answers;
  };
}

Load RespCommands(int port, int connections, int pipeline,
                  const std::function<std::string(std::uint32_t key)>& command) {
  std::vector<std::string> commands;
  for (std::uint32_t key = 0; key < kKeys; ++key) commands.push_back(command(key));
  auto load = std::make_shared<PipelineLoad>(
      port, connections,
      [commands = std::move(commands), draws = Draws::Uniform(kKeys)](std::string& to) mutable {
        to += commands[draws.Next()];
      },
      pipeline);
  return [load](double seconds) { return load->Run(seconds); };
}

std::string Command(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

std::string Throttle(std::uint32_t key) {
  return Command({"CL.THROTTLE", KeyName(key), "100", "1000000", "1", "1"});
}

std::string Post(const std::string& body) {
  return "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n"
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Returns `count` rules, each with its own path, on 100 hosts.
std::string Rules(int count) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    yaml.append("  - {id: r").append(n).append(", match: {host: h").append(std::to_string(i % 100));
    yaml.append(".example.com, path: /v1/p").append(n);
    yaml += "/**}, per: header:x-key, limit: 1000000/s, burst: 1000000}\n";
  }
  return yaml;
}

enum class By { kRule, kRequest };

Load Decide(const Ports& ports, int rules, By by) {
  std::vector<std::string> requests;
  std::mt19937 random(1);
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    const auto rule = random() % static_cast<unsigned>(rules);
    const std::string n = std::to_string(rule);
    requests.push_back(
        Post(by == By::kRule ? R"({"rule":"r)" + n + R"(","identity":")" + KeyName(key) + "\"}"
                             : R"({"request":{"method":"GET","host":"h)" +
                                   std::to_string(rule % 100) + R"(.example.com","path":"/v1/p)" +
                                   n + R"(/x","headers":{"x-key":")" + KeyName(key) + "\"}}}"));
  }
  return HttpRequests(ports.api, std::move(requests));
}

Load ForwardAuth(const Ports& ports) {
  std::vector<std::string> requests;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    requests.push_back(
        "GET /v1/auth HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nX-Forwarded-Method: GET\r\n"
        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example.com\r\n"
        "X-Forwarded-Uri: /v1/items/42?page=1\r\nX-Forwarded-For: 198.18." +
        std::to_string(i / 250) + "." + std::to_string(i % 250) + "\r\n\r\n");
  }
  return HttpRequests(ports.api, std::move(requests));
}

Load ProxiedGet(const Ports& ports) {
  std::vector<std::string> requests;
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    requests.push_back("GET /v1/items HTTP/1.1\r\nHost: a\r\nX-Key: " + KeyName(key) + "\r\n\r\n");
  }
  return HttpRequests(ports.gateway, std::move(requests));
}

constexpr const char* kOneRule = "rules: [{id: per-key, per: header:x-key, limit: 1000000000/s}]\n";
constexpr const char* kThreeRules =
    "rules:\n"
    "  - {id: per-key, per: header:x-key, limit: 1000000000/s}\n"
    "  - {id: per-ip, per: client_ip, limit: 1000000000/s}\n"
    "  - {id: at-once, per: header:x-key, algorithm: concurrency, limit: 1000/m}\n";

/// One build under measurement.
class Side {
 public:
  Side(const std::string& tidegate, const Folder& folder, const Row& row)
      : server_({tidegate, "serve", "--config", Config(folder, row), "--threads", "1"},
                kServerCore) {
    for (const int port : {ports_.api, ports_.resp, ports_.gateway}) {
      if (!WaitForPort(port)) throw std::runtime_error(tidegate + " did not start");
    }
    load_ = row.load(ports_);
  }

  void Warm(double seconds) { (void)load_(seconds); }
  /// Sends requests for `seconds` and returns the CPU time per request, in microseconds.
  [[nodiscard]] double Round(double seconds) {
    const double before = server_.CpuSeconds();
    const std::uint64_t answers = load_(seconds);
    return (server_.CpuSeconds() - before) * 1e6 / static_cast<double>(answers);
  }

 private:
  [[nodiscard]] std::string Config(const Folder& folder, const Row& row) const {
    const auto at = [](int port) { return "\"127.0.0.1:" + std::to_string(port) + "\""; };
    return folder.Write("tidegate-" + std::to_string(ports_.api) + ".yaml",
                        "listen: {api: " + at(ports_.api) +
                            ", admin: \"off\", resp: " + at(ports_.resp) +
                            ", gateway: " + at(ports_.gateway) + "}\n" + row.yaml);
  }

  const Ports ports_;
  Child server_;
  Load load_;
};

/// A mean and its 95 % confidence interval.
struct Interval {
  double low, mean, high;
};

Interval IntervalOf(const std::vector<double>& values) {
  // Student's t for 0.975, by degrees of freedom. For more degrees the last value is close enough.
  constexpr std::array<double, 15> kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                         2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131};
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = kT[std::min(values.size() - 2, kT.size() - 1)];
  const double half = t * std::sqrt(squares / (n - 1) / n);
  return {mean - half, mean, mean + half};
}

class CompareBench {
 public:
  CompareBench(BenchOptions options, std::string other)
      : options_(std::move(options)), other_(std::move(other)) {}

  /// Runs all rows. Returns true if each ratio's interval is below kBar.
  bool Run();

 private:
  void Compare(const Row& row);
  [[nodiscard]] std::string Upstream() const {
    return "routes: [{id: all, upstream: one}]\n"
           "upstreams: {one: {targets: [\"http://127.0.0.1:" +
           std::to_string(upstream_.port()) + "\"]}}\n";
  }

  const BenchOptions options_;
  const std::string other_;
  bool held_ = true;
  Folder folder_;
  AwakeCores awake_{kServerCore, kLoadCore};
  HttpUpstream upstream_{kLoadCore};
  Turns turns_{2};
};

bool CompareBench::Run() {
  const std::string off = "access_log: \"off\"\n" + Upstream();
  const std::string logged = "access_log: " + folder_.path() + "/access.log\n" + Upstream();
  const std::string proxy = "client_ip: {trusted_proxies: [127.0.0.1]}\n";
  const redis_test::RedisServer redis({.core = kLoadCore});
  const std::string in_redis = "store: {url: \"redis://127.0.0.1:" + std::to_string(redis.port()) +
                               "\", on_failure: closed, deadline: 200ms}\n";
  const std::vector<Row> rows = {
      {"http-rule", "POST /v1/decide by {rule, identity}, 10 rules", off + Rules(10),
       [](const Ports& ports) { return Decide(ports, 10, By::kRule); }},
      {"http-rule-10k", "the same, 10,000 rules", off + Rules(10'000),
       [](const Ports& ports) { return Decide(ports, 10'000, By::kRule); }},
      {"http-request", "POST /v1/decide by {request}, 10 rules", off + Rules(10),
       [](const Ports& ports) { return Decide(ports, 10, By::kRequest); }},
      {"http-request-10k", "the same, 10,000 rules", off + Rules(10'000),
       [](const Ports& ports) { return Decide(ports, 10'000, By::kRequest); }},
      {"auth", "GET /v1/auth, as Traefik and Caddy send it",
       off + proxy +
           "rules: [{id: per-ip, match: {path: /v1/**}, per: client_ip, limit: 1000000/s}]\n",
       &ForwardAuth},
      {"resp-pipelined", "CL.THROTTLE, 20 connections, pipelines of 32", off + kOneRule,
       [](const Ports& ports) { return RespCommands(ports.resp, 20, 32, &Throttle); }},
      {"resp-single", "CL.THROTTLE, 50 connections, one by one", off + kOneRule,
       [](const Ports& ports) { return RespCommands(ports.resp, 50, 1, &Throttle); }},
      {"resp-rule", "TG.DECIDE of a rule, pipelines of 32", off + kOneRule,
       [](const Ports& ports) {
         return RespCommands(ports.resp, 20, 32, [](std::uint32_t key) {
           return Command({"TG.DECIDE", "per-key", KeyName(key)});
         });
       }},
      {"resp-denied", "CL.THROTTLE on one denied key, pipelines of 32", off + kOneRule,
       [](const Ports& ports) {
         return RespCommands(ports.resp, 20, 32, [](std::uint32_t) {
           return Command({"CL.THROTTLE", "hot", "0", "1", "8640000", "1"});
         });
       }},
      {"gateway", "a proxied GET, one rule", off + kOneRule, &ProxiedGet},
      {"gateway-rules", "a proxied GET, three rules, one of them a lease", off + kThreeRules,
       &ProxiedGet},
      {"gateway-log", "a proxied GET, with an access log", logged + kOneRule, &ProxiedGet},
      {"gateway-redis", "a proxied GET, decided by Redis", off + in_redis + kOneRule, &ProxiedGet},
      {"http-redis", "POST /v1/decide, decided by Redis", off + in_redis + Rules(10),
       [](const Ports& ports) { return Decide(ports, 10, By::kRule); }},
  };
  std::printf("CPU time per request of this build and the other; ratio with its 95 %% interval\n");
  std::printf("%-17s %-48s %9s %9s %7s %16s\n", "", "", "this, us", "other, us", "ratio",
              "interval");
  for (const Row& row : rows) {
    if (options_.Wants(row.name)) Compare(row);
  }
  return held_;
}

void CompareBench::Compare(const Row& row) {
  // The memory layout of a process makes it faster or slower by some percent for its whole life, so
  // each build is started several times. Each pair of processes yields one ratio.
  const int lives = options_.quick ? 7 : 11;
  const int rounds = options_.quick ? 30 : 50;
  // Short, because disturbances on a shared machine last longer and so affect both builds equally.
  constexpr double kSeconds = 0.03;
  std::vector<double> ratios;
  std::array<std::vector<double>, 2> all;
  for (int life = 0; life < lives; ++life) {
    ShowProgress(row.name, life, lives);
    std::array<std::optional<Side>, 2> sides;
    for (const std::size_t i : turns_.Next()) {
      sides[i].emplace(i == 0 ? options_.tidegate : other_, folder_, row);
    }
    for (auto& side : sides) side->Warm(0.3);
    std::array<std::vector<double>, 2> micros;
    for (int round = 0; round < rounds; ++round) {
      for (const std::size_t i : turns_.Next()) micros[i].push_back(sides[i]->Round(kSeconds));
    }
    ratios.push_back(MedianRatio(micros[0], micros[1]));
    for (std::size_t i = 0; i < 2; ++i) all[i].push_back(MedianOf(micros[i]));
  }
  const Interval interval = IntervalOf(ratios);
  const bool holds = interval.high <= kBar;
  held_ = held_ && holds;
  std::printf("%-17s %-48s %9.3f %9.3f %6.3fx  [%.3f, %.3f]  (<= %.2fx) %s\n", row.name, row.what,
              MedianOf(all[0]), MedianOf(all[1]), interval.mean, interval.low, interval.high, kBar,
              holds ? "holds" : "MISSED");
  std::fflush(stdout);
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    BenchOptions options = BenchOptions::Parse("compare_bench", argc, argv);
    if (options.rows.empty()) {
      throw std::runtime_error("usage: compare_bench TIDEGATE [--quick] OTHER [ROW...]");
    }
    std::string other = options.rows.front();
    options.rows.erase(options.rows.begin());
    PinTo(kLoadCore);
    return CompareBench(std::move(options), std::move(other)).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_bench: %s\n", error.what());
    return 1;
  }
}

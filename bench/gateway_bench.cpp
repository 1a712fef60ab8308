// SPDX-License-Identifier: Apache-2.0
// Compares the cost of a request through the gateway with the cost of the same request through
// nginx and HAProxy, each with a limit, in one run. The proxies run on one core; the load
// generator, the upstream and Redis run on another, and the load is sent in turns. Usage:
// gateway_bench TIDEGATE [--quick] [ROW...]
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "awake.hpp"
#include "bench_options.hpp"
#include "child.hpp"
#include "gateway_contest.hpp"
#include "gateway_proxies.hpp"
#include "http_client.hpp"
#include "http_upstream.hpp"
#include "redis/redis_server.hpp"
#include "redis_script.hpp"
#include "support/files.hpp"

namespace tidegate::bench {
namespace {

constexpr int kProxyCore = 0;
constexpr int kLoadCore = 1;
constexpr int kIdleConnections = 5000;
constexpr double kPacedPerSecond = 5000;

class GatewayBench {
 public:
  explicit GatewayBench(BenchOptions options) : options_(std::move(options)) {}

  /// Runs all rows. Returns true if all ratios are within their bars.
  bool Run() {
    if (options_.Wants("keys")) Keys();
    if (options_.Wants("memory")) Memory();
    if (options_.Wants("log")) Log();
    if (options_.Wants("redis")) Redis();
    if (options_.Wants("connections")) Connections();
    return held_;
  }

 private:
  using Side = GatewayContest::Side;

  [[nodiscard]] ProxySite Site(AccessLog log = AccessLog::kOff) const {
    return {options_.tidegate, folder_.path(), upstream_.port(), kProxyCore, log};
  }
  [[nodiscard]] bench::Rounds Rounds() const {
    return options_.quick ? bench::Rounds{25, 0.05} : bench::Rounds{75, 0.1};
  }

  void Keys();
  void Memory();
  void ShowBar(const char* what, const Side& a, const Side& b, double most);
  void Latency(const std::vector<const Side*>& sides);
  void Log();
  void Redis();
  void Connections();
  void MemoryPerConnection(const Proxy& proxy);

  const BenchOptions options_;
  bool held_ = true;
  // Members are destroyed in reverse order, so the cores stay awake until all measurements are
  // done.
  AwakeCores awake_{kProxyCore, kLoadCore};
  test::TemporaryFolder folder_;
  HttpUpstream upstream_{kLoadCore};
};

void Headline(const char* row, const char* what) { std::printf("\n%s: %s\n", row, what); }

void Show(const GatewayContest::Side& side) {
  std::printf("  %-44s %7.2f us %9.0f requests/s, %3.0f%% of its core\n", side.proxy.name.c_str(),
              MedianOf(side.micros), static_cast<double>(side.answers) / side.seconds,
              100 * side.busy / side.seconds);
}

void ShowRatio(const char* what, double ratio) { std::printf("  %-44s %6.2fx", what, ratio); }

void GatewayBench::ShowBar(const char* what, const Side& a, const Side& b, double most) {
  const double ratio = MedianRatio(a.micros, b.micros);
  held_ = held_ && ratio <= most;
  ShowRatio(what, ratio);
  std::printf("  (<= %.2fx) %s\n", most, ratio <= most ? "holds" : "MISSED");
}

void GatewayBench::Keys() {
  GatewayContest contest("keys", upstream_);
  ProxySite site = Site();
  site.per = LimitPer::kApiKey;
  const Side& tidegate = contest.Add(StartTidegate(site), &ProxiedRequestWithKey);
  const Side& nginx = contest.Add(StartNginx(site), &ProxiedRequestWithKey);
  const Side& haproxy = contest.Add(StartHaproxy(site), &ProxiedRequestWithKey);
  contest.Run(Rounds());
  Headline(
      "keys",
      "CPU time per request, medians of rounds in turn; 64 clients, 10,000 API keys in a header, "
      "no access log");
  for (const Side* const side : {&tidegate, &nginx, &haproxy}) Show(*side);
  ShowBar("tidegate beside nginx", tidegate, nginx, 0.9);
  ShowBar("tidegate beside haproxy", tidegate, haproxy, 1);
  std::fflush(stdout);
}

void GatewayBench::Memory() {
  GatewayContest contest("memory", upstream_);
  const Side& tidegate = contest.Add(StartTidegate(Site()));
  const Side& nginx = contest.Add(StartNginx(Site()));
  const Side& haproxy = contest.Add(StartHaproxy(Site()));
  contest.Run(Rounds());
  Headline("memory", "CPU time per request, medians of rounds in turn; 64 clients, no access log");
  for (const Side* const side : {&tidegate, &nginx, &haproxy}) Show(*side);
  ShowBar("tidegate beside nginx", tidegate, nginx, 1);
  ShowRatio("tidegate beside haproxy", MedianRatio(tidegate.micros, haproxy.micros));
  std::printf("\n");
  std::fflush(stdout);
  Latency({&tidegate, &nginx, &haproxy});
}

void GatewayBench::Latency(const std::vector<const Side*>& sides) {
  std::vector<int> ports{upstream_.port()};
  for (const Side* const side : sides) ports.push_back(side->proxy.port);
  const auto latencies =
      PaceInTurns("memory, latency", ports, kPacedPerSecond,
                  options_.quick ? bench::Rounds{9, 0.12} : bench::Rounds{31, 0.2});
  std::printf("  at %.0f requests/s, medians of rounds in turn:\n", kPacedPerSecond);
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    const auto& [p50, p99, calm_p99] = latencies[i];
    std::printf("  %-44s p50 %5.0f us, p99 %5.0f us, %4.0f us in the calmest round",
                i == 0 ? "the upstream itself" : sides[i - 1]->proxy.name.c_str(), p50, p99,
                calm_p99);
    if (i != 0) {
      std::printf("; added: %.0f, %.0f, %.0f us", p50 - latencies[0].p50, p99 - latencies[0].p99,
                  calm_p99 - latencies[0].calm_p99);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

void GatewayBench::Log() {
  GatewayContest contest("log", upstream_);
  const Side& tidegate = contest.Add(StartTidegate(Site(AccessLog::kFile)));
  const Side& nginx = contest.Add(StartNginx(Site(AccessLog::kFile)));
  contest.Run(Rounds());
  Headline("log", "the same, each request logged as JSON to a file, nginx's with buffer=64k");
  for (const Side* const side : {&tidegate, &nginx}) Show(*side);
  ShowRatio("tidegate beside nginx", MedianRatio(tidegate.micros, nginx.micros));
  std::printf("\n");
  std::fflush(stdout);
}

/// Returns the number of a Tidegate's decisions that Redis made, from its metrics.
double DecidedByStore(const Proxy& tidegate) {
  const std::string metrics =
      HttpClient(tidegate.admin_port).Ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  constexpr std::string_view kBefore = R"(decided_by="store"} )";
  const std::size_t at = metrics.find(kBefore);
  return at == std::string::npos ? 0 : std::stod(metrics.substr(at + kBefore.size()));
}

void GatewayBench::Redis() {
  redis_test::RedisServer redis{{.core = kLoadCore}};
  const std::string sha = redis.Text({"SCRIPT", "LOAD", kUsualScript});
  GatewayContest contest("redis", upstream_);
  const Side& tidegate = contest.Add(StartTidegate(Site(), redis.url()));
  const Side& nginx = contest.Add(StartNginxLua(Site(), redis.port(), sha));
  const double before = DecidedByStore(tidegate.proxy);
  contest.Run(Rounds(), [&] { return redis.CpuSeconds(); });
  const double decided = DecidedByStore(tidegate.proxy) - before;
  Headline("redis", "limits counted in Redis, no access log");
  for (const Side* const side : {&tidegate, &nginx}) {
    Show(*side);
    std::printf("  %-44s %7.2f us\n", "  Redis's own, per request", MedianOf(side->other_micros));
  }
  ShowRatio("tidegate beside nginx", MedianRatio(tidegate.micros, nginx.micros));
  std::printf("\n");
  ShowRatio("Redis under tidegate beside under nginx",
            MedianRatio(tidegate.other_micros, nginx.other_micros));
  std::printf("\n");
  // The other requests were allowed because Redis did not reply in time, as on a busy machine.
  std::printf("  %-44s %6.2f%%\n", "requests that Redis decided for tidegate",
              100 * decided / static_cast<double>(tidegate.answers));
  std::fflush(stdout);
}

void GatewayBench::Connections() {
  Headline("connections",
           "resident memory of 5,000 idle keep-alive connections, each used once; "
           "what the kernel holds is not in it");
  for (const auto start : {+[](const ProxySite& site) { return StartTidegate(site); },
                           +[](const ProxySite& site) { return StartNginx(site); },
                           +[](const ProxySite& site) { return StartHaproxy(site); }}) {
    MemoryPerConnection(start(Site()));
  }
}

void GatewayBench::MemoryPerConnection(const Proxy& proxy) {
  std::fprintf(stderr, "connections: %s\n", proxy.name.c_str());
  // Warm-up requests, which are not measured.
  for (int i = 0; i < 500; ++i) (void)HttpClient(proxy.port).Ask(ProxiedRequest());
  const std::int64_t before = proxy.process->ResidentBytes();
  std::deque<HttpClient> clients;
  for (int i = 0; i < kIdleConnections; ++i) {
    (void)clients.emplace_back(proxy.port).Ask(ProxiedRequest());
  }
  const std::int64_t after = proxy.process->ResidentBytes();
  if (!std::ranges::all_of(clients, [](const HttpClient& client) { return client.idle(); })) {
    throw std::runtime_error(proxy.name + " closed an idle connection");
  }
  std::printf("  %-44s %7.0f bytes each; %.1f MiB in all, %.1f MiB without them\n",
              proxy.name.c_str(),
              (static_cast<double>(after) - static_cast<double>(before)) / kIdleConnections,
              static_cast<double>(after) / (1 << 20), static_cast<double>(before) / (1 << 20));
  std::fflush(stdout);
}

/// Raises the limit on open files for the idle connections, here and in the proxies, which inherit
/// the limit.
void AllowDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  using namespace tidegate::bench;
  try {
    BenchOptions options = BenchOptions::Parse("gateway_bench", argc, argv);
    PinTo(kLoadCore);
    AllowDescriptors();
    return GatewayBench(std::move(options)).Run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gateway_bench: %s\n", error.what());
    return 1;
  }
}

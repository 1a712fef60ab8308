// SPDX-License-Identifier: Apache-2.0
#include "gateway_contest.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "http_pace.hpp"

namespace tidegate::bench {
namespace {

constexpr int kConnections = 64;
constexpr int kKeys = 10'000;

double At(const std::vector<double>& sorted, double part) {
  return sorted.at(static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1)));
}

}  // namespace

const std::string& ProxiedRequest() {
  static const std::string request =
      "GET /v1/items/42?page=1 HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\n"
      "Accept: */*\r\n\r\n";
  return request;
}

const std::string& ProxiedRequestWithKey(std::uint64_t number) {
  static const std::vector<std::string> requests = [] {
    std::vector<std::string> all;
    for (int key = 0; key < kKeys; ++key) {
      all.push_back(ProxiedRequest());
      all.back().insert(all.back().size() - 2,
                        "X-Api-Key: client-" + std::to_string(100'000 + key) + "\r\n");
    }
    return all;
  }();
  // Send requests in another order than they were made in, so that neighbours in memory are not in
  // the cache. 7919 is prime.
  return requests[number * 7919 % requests.size()];
}

GatewayContest::Side& GatewayContest::Add(Proxy proxy, Requests requests) {
  if (!requests) requests = [](std::uint64_t) -> const std::string& { return ProxiedRequest(); };
  Side& side = sides_.emplace_back();
  side.proxy = std::move(proxy);
  side.load = std::make_unique<HttpLoad>(side.proxy.port, kConnections, std::move(requests),
                                         HttpLoad::Addresses::kOneEach);
  (void)side.load->Run(0.3);
  return side;
}

void GatewayContest::Run(Rounds rounds, const OtherCpu& other) {
  Turns turns(sides_.size());
  for (int round = 0; round < rounds.count; ++round) {
    ShowProgress(label_, round, rounds.count);
    for (const std::size_t i : turns.Next()) Round(sides_[i], rounds.seconds, other);
  }
}

void GatewayContest::Round(Side& side, double seconds, const OtherCpu& other) {
  const std::uint64_t passed_before = upstream_.requests();
  const double other_before = other ? other() : 0;
  const double cpu_before = side.proxy.process->CpuSeconds();
  const auto begun = std::chrono::steady_clock::now();
  const auto outcome = side.load->Run(seconds);
  const double used = side.proxy.process->CpuSeconds() - cpu_before;
  side.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const auto answers = static_cast<double>(outcome.answers);
  if (outcome.failed != 0 || outcome.ok != outcome.answers) {
    throw std::runtime_error(side.proxy.name + ": " + std::to_string(outcome.failed) +
                             " connections broke and " +
                             std::to_string(outcome.answers - outcome.ok) + " of " +
                             std::to_string(outcome.answers) + " answers were not 200");
  }
  if (upstream_.requests() - passed_before != outcome.answers) {
    throw std::runtime_error(side.proxy.name +
                             ": the upstream did not get one request per request");
  }
  side.answers += outcome.answers;
  side.busy += used;
  side.micros.push_back(used * 1e6 / answers);
  if (other) side.other_micros.push_back((other() - other_before) * 1e6 / answers);
}

std::vector<PacedLatency> PaceInTurns(const std::string& label, const std::vector<int>& ports,
                                      double per_second, Rounds rounds) {
  std::deque<HttpPace> paces;
  for (const int port : ports) {
    paces.emplace_back(std::vector<int>{port}, kConnections,
                       [](std::uint64_t) -> const std::string& { return ProxiedRequest(); });
    (void)paces.back().Run(per_second, 0.1);
  }
  Turns turns(ports.size());
  std::vector<std::vector<double>> p50(ports.size());
  std::vector<std::vector<double>> p99(ports.size());
  for (int round = 0; round < rounds.count; ++round) {
    ShowProgress(label, round, rounds.count);
    for (const std::size_t i : turns.Next()) {
      const auto outcome = paces[i].Run(per_second, rounds.seconds);
      if (outcome.ok != outcome.micros.size())
        throw std::runtime_error("not all responses were 200");
      p50[i].push_back(At(outcome.micros, 0.5));
      p99[i].push_back(At(outcome.micros, 0.99));
    }
  }
  std::vector<PacedLatency> latencies;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    latencies.push_back({MedianOf(p50[i]), MedianOf(p99[i]), std::ranges::min(p99[i])});
  }
  return latencies;
}

}  // namespace tidegate::bench

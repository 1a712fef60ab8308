// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway_proxies.hpp"
#include "http_load.hpp"
#include "http_upstream.hpp"
#include "rounds.hpp"

namespace tidegate::bench {

/// A GET of 100 bytes.
[[nodiscard]] const std::string& ProxiedRequest();
/// The same with one of 10,000 API keys, in turn.
[[nodiscard]] const std::string& ProxiedRequestWithKey(std::uint64_t number);

/// Proxies before one upstream, loaded in turns, in an order that changes; what counts is the CPU
/// time per request of each.
class GatewayContest {
 public:
  struct Side {
    Proxy proxy;
    std::unique_ptr<HttpLoad> load;
    std::vector<double> micros;        ///< CPU time per request, one per round.
    std::vector<double> other_micros;  ///< The same of a process that it makes work, as Redis.
    std::uint64_t answers = 0;
    double seconds = 0;
    double busy = 0;  ///< Seconds of CPU time.
  };
  /// CPU seconds so far of a process beside the proxies.
  using OtherCpu = std::function<double()>;

  /// `label`: of the progress line. The upstream outlives this.
  GatewayContest(std::string label, const HttpUpstream& upstream)
      : label_(std::move(label)), upstream_(upstream) {}

  /// Connects 64 clients, each from an address of its own, and warms the proxy up. The side stays
  /// where it is. By default all requests are ProxiedRequest().
  using Requests = std::function<const std::string&(std::uint64_t)>;
  Side& Add(Proxy proxy, Requests requests = {});
  /// Throws where an answer is not 200, or did not come from the upstream.
  void Run(Rounds rounds, const OtherCpu& other = {});

 private:
  void Round(Side& side, double seconds, const OtherCpu& other);

  const std::string label_;
  const HttpUpstream& upstream_;
  std::deque<Side> sides_;
};

/// How long answers take at a steady rate, in microseconds: medians over rounds.
struct PacedLatency {
  double p50 = 0;
  double p99 = 0;
  double calm_p99 = 0;  ///< Of the round where it was least: others disturb p99 first.
};
/// Of each port in turn.
[[nodiscard]] std::vector<PacedLatency> PaceInTurns(const std::string& label,
                                                    const std::vector<int>& ports,
                                                    double per_second, Rounds rounds);

}  // namespace tidegate::bench

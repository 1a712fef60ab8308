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

/// What all rows ask for: 100 bytes, by GET.
[[nodiscard]] const std::string& ProxiedRequest();

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

  /// Connects the clients, each from an address of its own, and warms it up. It stays where it is.
  Side& Add(Proxy proxy);
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

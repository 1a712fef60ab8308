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

/// Returns a GET request of 100 bytes.
[[nodiscard]] const std::string& ProxiedRequest();
/// Returns the same request with one of 10,000 API keys, chosen by `number`.
[[nodiscard]] const std::string& ProxiedRequestWithKey(std::uint64_t number);

/// Compares proxies in front of one upstream. They are loaded in turns, in an order that changes.
/// The result is the CPU time per request of each.
class GatewayContest {
 public:
  struct Side {
    Proxy proxy;
    std::unique_ptr<HttpLoad> load;
    std::vector<double> micros;        ///< Microseconds of CPU time per request, one value for each
                                       ///< round.
    std::vector<double> other_micros;  ///< Microseconds of CPU time per request of another process
                                       ///< that this proxy causes work in, such as Redis.
    std::uint64_t answers = 0;
    double seconds = 0;
    double busy = 0;  ///< CPU time of the proxy in seconds.
  };
  /// Returns the CPU time of another process than the proxies, in seconds since its start.
  using OtherCpu = std::function<double()>;

  /// `label`: text of the progress line. REQUIRES: `upstream` outlives this object.
  GatewayContest(std::string label, const HttpUpstream& upstream)
      : label_(std::move(label)), upstream_(upstream) {}

  /// Connects 64 clients with different addresses, and warms the proxy up. Returns a reference that
  /// stays valid. By default all requests are ProxiedRequest().
  using Requests = std::function<const std::string&(std::uint64_t)>;
  Side& Add(Proxy proxy, Requests requests = {});
  /// Measures all proxies. Throws if a response is not 200 or did not come from the upstream.
  void Run(Rounds rounds, const OtherCpu& other = {});

 private:
  void Round(Side& side, double seconds, const OtherCpu& other);

  const std::string label_;
  const HttpUpstream& upstream_;
  std::deque<Side> sides_;
};

/// Response times at a steady rate, in microseconds: medians over the rounds.
struct PacedLatency {
  double p50 = 0;
  double p99 = 0;
  double calm_p99 = 0;  ///< 99th percentile in the round in which it was lowest: other processes on
                        ///< the machine disturb it most.
};
/// Measures the response times of the server at each port, in turns.
[[nodiscard]] std::vector<PacedLatency> PaceInTurns(const std::string& label,
                                                    const std::vector<int>& ports,
                                                    double per_second, Rounds rounds);

}  // namespace tidegate::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "decision/pipeline.hpp"
#include "gateway/proxied_exchange.hpp"
#include "gateway/quota_accounting.hpp"
#include "gateway/routing.hpp"
#include "gateway/upstream_pool.hpp"
#include "net/http_listener.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "telemetry/access_log.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/slot_table.hpp"

namespace tidegate {

/// Counters of one reactor's exchanges. Any thread may read them.
struct GatewayCounters {
  /// The classes of statuses: 1xx to 5xx, and all others (600 to 999).
  static constexpr std::size_t kClasses = 6;
  [[nodiscard]] static constexpr std::size_t ClassOf(int status) noexcept {
    return std::min(static_cast<std::size_t>(status / 100 - 1), kClasses - 1);
  }
  /// Counters of an upstream.
  enum Column : std::size_t {
    kAttempts,
    kConnectFailures,
    kResets,
    kTimeouts,
    kBadAnswers,
    kRetries,
    kEjections,
    kFull,
    kDown,
    kMicros,  ///< Sum of the times until the heads of responses, in microseconds.
    kBuckets
  };
  /// Upper bounds of the buckets, in milliseconds; the last bucket has none.
  static constexpr std::array<std::int64_t, 12> kMillis = {1,   2,   5,   10,   25,   50,
                                                           100, 250, 500, 1000, 2500, 10000};

  SlotTable<kClasses> statuses;           ///< Indexed by route.
  SlotTable<kExchangeOutcomes> outcomes;  ///< Indexed by route.
  SlotTable<kBuckets + kMillis.size() + 1> upstreams;
};

/// The reverse proxy of one reactor: its exchanges, its connections to upstreams, its counters.
/// Everything but the counters must be used on the reactor's thread.
class Gateway : private net::Timer {
 public:
  struct Options {
    AccessLog* log = nullptr;             ///< nullptr: there is no access log.
    net::BufferBudget* budget = nullptr;  ///< nullptr: buffers have no common limit.
    /// Connections to upstreams whose descriptor is not below this number fail.
    int max_descriptor = std::numeric_limits<int>::max();
    /// A client must send or read at least this many bytes between two deadlines.
    std::size_t min_progress = 1024;
  };
  /// Reactor and pipeline must outlive the gateway.
  Gateway(net::Reactor& reactor, DecisionPipeline& pipeline, const Options& options);
  ~Gateway() override;

  /// Called when the pipeline has a new snapshot. Keeps connections to unchanged upstreams.
  void OnSnapshot();

  [[nodiscard]] net::Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }
  [[nodiscard]] DecisionPipeline& pipeline() noexcept { return pipeline_; }
  [[nodiscard]] LeaseKeeper& leases() noexcept { return leases_; }
  /// Returns the connections to the upstream with this index in the routes of the current snapshot.
  [[nodiscard]] const std::shared_ptr<UpstreamPool>& pool(std::size_t upstream) const noexcept {
    return pools_[upstream];
  }
  [[nodiscard]] GatewayCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const GatewayCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  [[nodiscard]] ProxiedExchange* TakeExchange();
  void GiveExchange(ProxiedExchange* exchange) noexcept { free_.push_back(exchange); }
  /// Deletes all but a few of the unused exchanges and buffers. REQUIRES: no exchange is running.
  void Trim();

  static constexpr std::size_t kIdSize = 32;
  /// Writes kIdSize random hexadecimal digits to `to`.
  void WriteId(char* to) noexcept;

  /// Returns the buffer for a line of the access log, or nullptr if there is no log. Call
  /// FinishLine after writing the line.
  [[nodiscard]] net::OutBuffer* BeginLine() { return options_.log == nullptr ? nullptr : &lines_; }
  void FinishLine();
  void FlushLog() {
    if (options_.log != nullptr) options_.log->Write(lines_.view());
    lines_.Clear();
    flush_armed_ = false;
  }
  /// Logs a request that was rejected before it had an exchange.
  void NoteRefused(const ClientStream& client, const net::HttpRefusal& refusal);

 private:
  void OnTimer(net::Timer::Clock::time_point) override { FlushLog(); }

  net::Reactor& reactor_;
  DecisionPipeline& pipeline_;
  const Options options_;
  net::BufferPool buffers_;
  GatewayCounters counters_;
  std::array<Random, 2> random_;  ///< Generators for ids: one for each half of an id.
  net::OutBuffer lines_;
  bool flush_armed_ = false;
  LeaseKeeper leases_;
  std::vector<std::shared_ptr<UpstreamPool>> pools_;  ///< Indexed by upstream.
  std::vector<std::unique_ptr<ProxiedExchange>> all_;
  std::vector<ProxiedExchange*> free_;
};

/// Writes the current time, as in `2024-05-06T07:08:09.123Z`.
void WriteLogTime(net::OutBuffer& out);

/// Accepts the gateway's clients.
class GatewayListener final : public net::Listener {
 public:
  GatewayListener(net::Reactor& reactor, net::Descriptor socket, Gateway& gateway,
                  const Options& options)
      : Listener(reactor, std::move(socket), options, net::kHttpRejections), gateway_(gateway) {}

  [[nodiscard]] Gateway& gateway() noexcept { return gateway_; }

 private:
  [[nodiscard]] net::Connection* NewConnection(net::Accepted accepted) override;
  Gateway& gateway_;
};

/// Returns metrics of the gateways of all reactors, and the state of the upstreams' members.
[[nodiscard]] std::vector<MetricFamily> GatewayMetrics(std::span<const Gateway* const> gateways,
                                                       const std::vector<std::string>& routes,
                                                       const std::vector<std::string>& upstreams,
                                                       const Upstreams& members,
                                                       const AccessLog* log);

}  // namespace tidegate

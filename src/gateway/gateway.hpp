// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "decision/pipeline.hpp"
#include "gateway/lease_keeper.hpp"
#include "gateway/passage.hpp"
#include "gateway/routing.hpp"
#include "gateway/upstream_pool.hpp"
#include "net/channel.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "telemetry/access_log.hpp"
#include "telemetry/slot_table.hpp"

namespace tidegate {

/// Counters of one reactor's passages. Any thread may read them.
struct GatewayCounters {
  /// 1xx to 5xx, and all others (600 to 999).
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
    kMicros,  ///< The sum of the times until the head of the response.
    kBuckets
  };
  /// Upper bounds of the buckets, in milliseconds; the last bucket has none.
  static constexpr std::array<std::int64_t, 12> kMillis = {1,   2,   5,   10,   25,   50,
                                                           100, 250, 500, 1000, 2500, 10000};

  SlotTable<kClasses> statuses;          ///< By route.
  SlotTable<kGatewayOutcomes> outcomes;  ///< By route.
  SlotTable<kBuckets + kMillis.size() + 1> upstreams;
};

/// The reverse proxy of one reactor: its passages, its connections to upstreams, its counters.
/// Everything but the counters must be used on the reactor's thread.
class Gateway : private net::Timer {
 public:
  struct Options {
    AccessLog* log = nullptr;             ///< nullptr: there is no access log.
    net::BufferBudget* budget = nullptr;  ///< nullptr: buffers have no common limit.
    /// Connections to upstreams whose descriptor is not below this number fail: the remaining
    /// descriptors are reserved.
    int max_descriptor = std::numeric_limits<int>::max();
    /// Bytes that a client must at least send of a body, or read of a response, between two
    /// deadlines.
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
  /// The connections to an upstream, by its place in the routes of the current snapshot.
  [[nodiscard]] const std::shared_ptr<UpstreamPool>& pool(std::size_t upstream) const noexcept {
    return pools_[upstream];
  }
  [[nodiscard]] GatewayCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const GatewayCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  [[nodiscard]] Passage* TakePassage();
  void GivePassage(Passage* passage) noexcept;
  /// Deletes unused passages and buffers, but for a few. REQUIRES: no passage is running.
  void Trim();

  /// Writes 32 random hexadecimal digits to `to`.
  void WriteId(char* to) noexcept;
  [[nodiscard]] std::uint64_t Random() noexcept;

  /// Returns the buffer for a line of the access log, or nullptr if there is no log. After writing
  /// the line the caller must call FinishLine.
  [[nodiscard]] net::OutBuffer* BeginLine();
  void FinishLine();
  void FlushLog();
  /// Logs a request that was rejected before it had a passage.
  void NoteRefused(const ClientStream& client, const net::HttpRefusal& refusal);

 private:
  void OnTimer(net::Timer::Clock::time_point) override { FlushLog(); }

  net::Reactor& reactor_;
  DecisionPipeline& pipeline_;
  const Options options_;
  net::BufferPool buffers_;
  GatewayCounters counters_;
  std::array<std::uint64_t, 2> random_{};
  net::OutBuffer lines_;
  bool flush_armed_ = false;
  LeaseKeeper leases_;
  std::vector<std::shared_ptr<UpstreamPool>> pools_;  ///< By upstream.
  std::vector<std::unique_ptr<Passage>> all_;
  std::vector<Passage*> free_;
};

/// `2024-05-06T07:08:09.123Z`
void WriteLogTime(net::OutBuffer& out);

/// Accepts the gateway's clients.
class GatewayListener final : public net::Listener {
 public:
  GatewayListener(net::Reactor& reactor, net::Descriptor socket, Gateway& gateway,
                  const Options& options)
      : Listener(reactor, std::move(socket), options), gateway_(gateway) {}

  [[nodiscard]] Gateway& gateway() noexcept { return gateway_; }
  [[nodiscard]] std::string_view shed_text() const noexcept override;
  [[nodiscard]] std::string_view needs_tls_text() const noexcept override;

 private:
  [[nodiscard]] net::Connection* NewConnection(net::Accepted accepted) override;
  Gateway& gateway_;
};

}  // namespace tidegate

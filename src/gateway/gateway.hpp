// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "frontends/override_desk.hpp"
#include "frontends/policy.hpp"
#include "gateway/passage.hpp"
#include "gateway/routing.hpp"
#include "gateway/upstream_pool.hpp"
#include "net/channel.hpp"
#include "net/listener.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "telemetry/access_log.hpp"
#include "telemetry/slot_table.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// What a reload swaps as a whole, as one reactor holds it.
struct GatewayState {
  Policy policy;
  std::shared_ptr<const Routing> routing;
  std::vector<std::shared_ptr<UpstreamPool>> pools;  ///< By upstream.
};

/// What one reactor counts of its passages; any thread may read.
struct GatewayCounters {
  static constexpr std::size_t kClasses = 5;  ///< 1xx to 5xx.
  /// Of an upstream.
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
    kMicros,  ///< The sum of the times until the head of the answer.
    kBuckets
  };
  /// Upper ends, in milliseconds; one more is without an end.
  static constexpr std::array<std::int64_t, 12> kMillis = {1,   2,   5,   10,   25,   50,
                                                           100, 250, 500, 1000, 2500, 10000};

  SlotTable<kClasses> statuses;          ///< By route.
  SlotTable<kGatewayOutcomes> outcomes;  ///< By route.
  SlotTable<kBuckets + kMillis.size() + 1> upstreams;
};

/// The reverse proxy of one reactor: its passages, its connections to upstreams, its counters.
/// Everything but the counters on the reactor's thread.
class Gateway : private net::Timer {
 public:
  struct Options {
    net::HttpLimits limits;
    AccessLog* log = nullptr;  ///< nullptr: none is kept.
  };
  /// All of these outlive it.
  Gateway(net::Reactor& reactor, AsyncStore& store, Tally& tally, const OverrideDesk& overrides,
          const Options& options);
  ~Gateway() override;

  /// For all requests from now on; those under way keep what they began with.
  void Use(const std::shared_ptr<const Policy>& policy,
           const std::shared_ptr<const Routing>& routing);

  [[nodiscard]] net::Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }
  [[nodiscard]] AsyncStore& store() noexcept { return store_; }
  [[nodiscard]] Tally& tally() noexcept { return tally_; }
  [[nodiscard]] const OverrideDesk& overrides() const noexcept { return overrides_; }
  [[nodiscard]] GatewayCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const GatewayCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] const std::shared_ptr<const GatewayState>& state() const noexcept { return state_; }

  [[nodiscard]] Passage* TakePassage();
  void GivePassage(Passage* passage) noexcept;

  /// 32 hexadecimal digits that nobody can guess; written to `to`.
  void WriteId(char* to) noexcept;
  [[nodiscard]] std::uint64_t Random() noexcept;

  /// Calls Renew of a passage that holds leases of such a length, once, in time.
  [[nodiscard]] Renewals::iterator RenewLater(Passage& passage, Micros lease);
  void ForgetRenewal(Renewals::iterator renewal) noexcept { renewals_.erase(renewal); }

  /// Where a line of the access log is put together; nullptr: there is none. FinishLine after it.
  [[nodiscard]] net::OutBuffer* BeginLine();
  void FinishLine();
  void FlushLog();
  /// A request that did not get as far as a passage.
  void NoteRefused(const ClientStream& client, const net::HttpRefusal& refusal);

 private:
  void OnTimer(net::Timer::Clock::time_point now) override;
  void ArmTimer();

  net::Reactor& reactor_;
  AsyncStore& store_;
  Tally& tally_;
  const OverrideDesk& overrides_;
  const Options options_;
  net::BufferPool buffers_;
  GatewayCounters counters_;
  std::array<std::uint64_t, 2> random_{};
  net::OutBuffer lines_;
  net::Timer::Clock::time_point flush_at_{};
  Renewals renewals_;
  std::shared_ptr<const GatewayState> state_;
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "decision/pipeline.hpp"
#include "frontends/api_frontend.hpp"
#include "frontends/resp/resp_frontend.hpp"
#include "gateway/gateway.hpp"
#include "gateway/upstream_care.hpp"
#include "limiter/guard.hpp"
#include "net/reactor.hpp"
#include "server/fleet_member.hpp"
#include "telemetry/tally.hpp"

namespace tidegate {

/// A reactor, the components that run on it, and its thread. Each member uses those above it, so
/// they are destroyed from the last to the first.
struct Worker {
  struct Options {
    const Config& config;
    Store& store;        ///< The memory store: the only store, or that of `local` policies.
    FleetMember* fleet;  ///< nullptr: the memory store decides.
    std::shared_ptr<const Snapshot> snapshot;
    std::shared_ptr<const OverrideTable> overrides;
    AuthFailures& api_failures;
    AuthFailures& resp_failures;
    AccessLog* access_log;  ///< nullptr: there is no access log.
    net::BufferBudget& budget;
    int upstream_descriptors;  ///< See DescriptorPlan::upstreams.
    std::size_t min_progress;  ///< See net::Listener::Options.
    std::string version;
    bool first;
  };
  explicit Worker(const Options& options);

  /// Uses `snapshot` for new requests. On the reactor's thread.
  void Use(const std::shared_ptr<const Snapshot>& snapshot);
  /// Frees memory that a burst of requests has left behind. On the reactor's thread, outside of any
  /// request.
  void Trim();
  /// Returns the number of calls that wait for Redis. On the reactor's thread.
  [[nodiscard]] std::size_t waiting() const noexcept { return guard ? guard->waiting() : 0; }

  net::Reactor reactor;
  Tally metrics;
  std::unique_ptr<Guard> guard;  ///< nullptr: the memory store decides.
  DecisionPipeline pipeline;
  ApiFrontend api;
  std::unique_ptr<RespFrontend> resp;  ///< nullptr: `listen.resp` is off.
  std::unique_ptr<Gateway> gateway;    ///< nullptr: `listen.gateway` is off.
  std::unique_ptr<UpstreamCare> care;  ///< Only on the first reactor, and only with a gateway.
  std::thread thread;
};

}  // namespace tidegate

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

/// A reactor, what runs on it, and the thread that runs it. Destroyed from the last member to the
/// first: each uses those above it.
struct Worker {
  struct Options {
    const Config& config;
    Store& store;        ///< The memory store: the only one, or what `local` policies count in.
    FleetMember* fleet;  ///< nullptr: the memory store decides.
    std::shared_ptr<const Snapshot> snapshot;
    std::shared_ptr<const OverrideTable> overrides;
    Refusals& api_refusals;
    Refusals& resp_refusals;
    AccessLog* access_log;  ///< nullptr: none is kept.
    std::string version;
    bool first;
  };
  explicit Worker(const Options& options);

  /// Decides by `snapshot` from now on. On the reactor's thread, as all that follows.
  void Use(const std::shared_ptr<const Snapshot>& snapshot);
  /// Calls that wait for Redis.
  [[nodiscard]] std::size_t waiting() const noexcept { return guard ? guard->waiting() : 0; }

  net::Reactor reactor;
  Tally metrics;
  std::unique_ptr<Guard> guard;  ///< nullptr: the memory store decides.
  DecisionPipeline pipeline;
  ApiFrontend api;
  std::unique_ptr<RespFrontend> resp;  ///< nullptr: it is off; as the next.
  std::unique_ptr<Gateway> gateway;
  std::unique_ptr<UpstreamCare> care;  ///< With a gateway, on the first reactor only.
  std::thread thread;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "decision/pipeline.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"

namespace tidegate {

/// Holds the `concurrency` leases of requests in the gateway: renews them in time and releases them
/// when the request is over. One per reactor, on its thread.
class LeaseKeeper final : private net::Timer, private DecisionListener {
 public:
  LeaseKeeper(net::Reactor& reactor, DecisionPipeline& pipeline)
      : net::Timer(reactor.timers()), pipeline_(pipeline) {}
  ~LeaseKeeper() override;

  /// Takes over the leases among the charges of `decided`. Returns a call that holds them, or
  /// nullptr if there are none. REQUIRES: the lease ids are unique to the request, so that a
  /// release never ends the lease of another request.
  [[nodiscard]] DecisionCall* Hold(const DecisionCall& decided);
  /// Ends the leases. The caller must not use `held`, which Hold returned, afterwards.
  void Release(DecisionCall& held);

 private:
  using Renewals = std::multimap<net::Timer::Clock::time_point, DecisionCall*>;
  /// The keeper's data of a call that holds leases, attached to it.
  struct Held {
    Renewals::iterator due;
    bool renewing = false;  ///< A renewal is in progress.
    bool released = false;  ///< Release was called; a renewal in progress is awaited first.
  };

  void OnTimer(net::Timer::Clock::time_point now) override;
  void OnDecided(DecisionCall& call) noexcept override;
  void Renew(DecisionCall& held);
  void StartRelease(DecisionCall& held);
  /// Schedules the next renewal.
  [[nodiscard]] Renewals::iterator Schedule(DecisionCall& held);
  void ArmNext();

  DecisionPipeline& pipeline_;
  Renewals renewals_;
};

}  // namespace tidegate

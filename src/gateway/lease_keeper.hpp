// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "decision/pipeline.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"

namespace tidegate {

/// Holds the `concurrency` leases of requests that pass the gateway: renews them in time, and
/// releases them when the request is over. One per reactor.
class LeaseKeeper final : private net::Timer, private DecisionListener {
 public:
  LeaseKeeper(net::Reactor& reactor, DecisionPipeline& pipeline)
      : net::Timer(reactor.timers()), pipeline_(pipeline) {}
  ~LeaseKeeper() override;

  /// Takes over the leases of the charges of `decided`. The ids must be the request's own, so that
  /// a release never ends another request's lease. Returns nullptr if there are none.
  [[nodiscard]] DecisionCall* Hold(const DecisionCall& decided);
  /// Ends the leases. `held` must come from Hold, and is gone afterwards.
  void Release(DecisionCall& held);

 private:
  using Renewals = std::multimap<net::Timer::Clock::time_point, DecisionCall*>;
  /// What is attached to a call that holds leases.
  struct Held {
    Renewals::iterator due;
    bool renewing = false;  ///< A renewal is with the store.
    bool released = false;  ///< The release waits for that renewal.
  };

  void OnTimer(net::Timer::Clock::time_point now) override;
  void OnDecided(DecisionCall& call) noexcept override;
  void Renew(DecisionCall& held);
  /// Schedules the next renewal.
  [[nodiscard]] Renewals::iterator Schedule(DecisionCall& held);
  void ArmNext();

  DecisionPipeline& pipeline_;
  Renewals renewals_;
};

}  // namespace tidegate

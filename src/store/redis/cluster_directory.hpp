// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/redis/cluster_view.hpp"
#include "store/redis/directory.hpp"

namespace tidegate::redis {

/// A cluster, asked through whichever of its nodes is connected.
class ClusterDirectory final : public Directory, private net::Timer {
 public:
  /// `seeds`: those of the configuration.
  ClusterDirectory(net::Reactor& reactor, Host& host, ClientStats& stats,
                   std::vector<Endpoint> seeds);

  void Start() override;
  void Stop() override;
  [[nodiscard]] std::uint64_t version() const noexcept override { return view_.version(); }
  [[nodiscard]] bool slotted() const noexcept override { return true; }
  [[nodiscard]] const Endpoint* OwnerOf(Slot slot) const noexcept override {
    return view_.OwnerOf(slot);
  }
  [[nodiscard]] std::vector<Endpoint> Owners() const override { return view_.Masters(); }
  void OnMoved(const Redirect& redirect) override;
  void OnTrouble() override;
  void OnNodeWell() override;

 private:
  void OnTimer(net::Timer::Clock::time_point now) override;
  void Ask(Node& node);
  void OnReply(const Reply* reply, const Endpoint& asked);
  void OnNoReply();
  void Arm();

  Host& host_;
  ClientStats& stats_;
  const std::vector<Endpoint> seeds_;
  ClusterView view_;
  std::uint64_t question_ = 0;  ///< Number of the last one: a late reply is of one before it.
  net::Timer::Clock::time_point patience_ends_ = net::Timer::Clock::time_point::max();
  bool stopped_ = true;
};

}  // namespace tidegate::redis

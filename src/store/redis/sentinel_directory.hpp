// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/redis/directory.hpp"
#include "store/redis/link.hpp"
#include "store/redis/sentinel_view.hpp"

namespace tidegate::redis {

/// The one master that the sentinels name: asks one of them, and listens to it.
class SentinelDirectory final : public Directory, private Link::Listener, private net::Timer {
 public:
  /// `link`: how to speak to a sentinel, whichever it is.
  SentinelDirectory(net::Reactor& reactor, Host& host, ClientStats& stats, Link::Options link,
                    std::vector<Endpoint> sentinels, const std::string& master_name);
  ~SentinelDirectory() override;

  void Start() override;
  void Stop() override;
  [[nodiscard]] std::uint64_t version() const noexcept override { return version_; }
  [[nodiscard]] const Endpoint* OwnerOf(Slot) const noexcept override {
    return view_.master() ? &*view_.master() : nullptr;
  }
  [[nodiscard]] std::vector<Endpoint> Owners() const override;
  void OnTrouble() override;
  void OnNodeWell() override { view_.OnWell(); }

 private:
  // Link::Listener
  void OnLinkUp(const Greeting& greeting) override;
  void OnLinkReply(const Reply& reply) override;
  void OnLinkPush(const Reply& push) override;
  void OnLinkDown(ErrorKind kind, const std::string& problem) override;
  void OnTimer(net::Timer::Clock::time_point now) override;

  void Connect();
  /// The connection, if there is one, is not used any more.
  void Leave();
  void Ask();
  void Take(SentinelView::News news);
  void Arm();

  net::Reactor& reactor_;
  Host& host_;
  ClientStats& stats_;
  Link::Options link_options_;
  SentinelView view_;
  std::unique_ptr<Link> link_;
  net::Timer::Clock::time_point patience_ends_ = net::Timer::Clock::time_point::max();
  std::uint64_t version_ = 0;
  bool stopped_ = true;
};

}  // namespace tidegate::redis

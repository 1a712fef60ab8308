// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/intrusive/list.hpp>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gateway/balancer.hpp"
#include "gateway/retry.hpp"
#include "gateway/upstream.hpp"
#include "gateway/upstream_connection.hpp"
#include "net/channel.hpp"
#include "net/reactor.hpp"

namespace tidegate {

/// One reactor's connections to one upstream.
class UpstreamPool {
 public:
  UpstreamPool(net::Reactor& reactor, net::BufferPool& buffers,
               const std::shared_ptr<Upstream>& upstream,
               int max_descriptor = std::numeric_limits<int>::max());
  ~UpstreamPool();
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;

  [[nodiscard]] net::Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] net::BufferPool& buffers() noexcept { return buffers_; }
  /// New connections must have descriptors below this number (Gateway::Options).
  [[nodiscard]] int max_descriptor() const noexcept { return max_descriptor_; }
  [[nodiscard]] Upstream& upstream() noexcept { return *upstream_; }
  [[nodiscard]] RetryBudget& budget() noexcept { return budget_; }
  [[nodiscard]] const Members& members();

  struct Choice {
    std::shared_ptr<Member> member;  ///< nullptr: none, by `lack`. Else it counts one more request.
    Balancer::Lack lack = Balancer::Lack::kDown;
  };
  [[nodiscard]] Choice Choose(std::span<const Member* const> tried);
  /// The request that Choose counted is over.
  static void Done(Member& member) noexcept {
    member.active.fetch_sub(1, std::memory_order_relaxed);
  }

  /// A connection to `member` for `user`: idle until now and up, or a new one on its way up.
  /// nullptr: there is none to be had, by `problem`; `ours` says that it is this machine's.
  [[nodiscard]] UpstreamConnection* Lend(const std::shared_ptr<Member>& member,
                                         UpstreamConnection::User& user, std::string& problem,
                                         bool& ours);
  /// Back in good order, after a whole answer: kept for the next.
  void Return(UpstreamConnection& connection);
  /// Of no use any more.
  void Discard(UpstreamConnection& connection);

 private:
  using List =
      boost::intrusive::list<UpstreamConnection, boost::intrusive::constant_time_size<false>>;
  struct Seat {
    std::shared_ptr<Member> member;
    std::unique_ptr<List> idle;
    std::size_t count = 0;
  };
  void Refresh();
  [[nodiscard]] Seat* SeatOf(const Member& member) noexcept;
  void Empty(Seat& seat);

  net::Reactor& reactor_;
  net::BufferPool& buffers_;
  const int max_descriptor_;
  const std::shared_ptr<Upstream> upstream_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const Members> members_;
  Balancer balancer_;
  RetryBudget budget_;
  std::vector<Seat> seats_;
  List lent_;
};

}  // namespace tidegate

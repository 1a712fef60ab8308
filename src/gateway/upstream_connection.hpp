// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/member.hpp"
#include "gateway/retry.hpp"
#include "net/channel.hpp"
#include "net/deadlines.hpp"
#include "net/reactor.hpp"

namespace tidegate {

class UpstreamPool;

/// One connection to one member. Lent by its pool to one user at a time; owned by the pool.
class UpstreamConnection final : public net::Watcher,
                                 public net::Deadlines::Node,
                                 public boost::intrusive::list_base_hook<
                                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// Who has it.
  class User {
   public:
    /// It can be written to. Not for one that was idle before: that can be at once.
    virtual void OnUpstreamUp() = 0;
    /// There is no connection: `problem` is for people. It is closed already; let go of it.
    virtual void OnUpstreamFailed(const std::string& problem) = 0;
    /// Something can be read or written.
    virtual void OnUpstreamReady() = 0;

   protected:
    ~User() = default;
  };

  UpstreamConnection(UpstreamPool& pool, std::shared_ptr<Member> member);
  ~UpstreamConnection() override;

  [[nodiscard]] net::Channel& channel() noexcept { return channel_; }
  [[nodiscard]] Member& member() noexcept { return *member_; }
  [[nodiscard]] const std::shared_ptr<Member>& shared_member() const noexcept { return member_; }
  /// It has carried a request before: the other side may be closing it just now.
  [[nodiscard]] bool reused() const noexcept { return reused_; }
  [[nodiscard]] bool up() const noexcept { return state_ == State::kUp; }

 private:
  friend class UpstreamPool;
  enum class State : std::uint8_t { kConnecting, kShaking, kUp, kIdle, kClosed };

  /// False: there is no connection to be had, and `problem` says why; `ours`: for want of something
  /// on this machine.
  [[nodiscard]] bool Connect(std::string& problem, bool& ours);
  void OnReady(std::uint32_t events) override;
  void OnDeadline(net::Deadlines::Kind kind) override;
  void OnConnected();
  void Shake();
  void Fail(const std::string& problem);

  UpstreamPool& pool_;
  const std::shared_ptr<Member> member_;
  net::Channel channel_;
  State state_ = State::kConnecting;
  bool reused_ = false;
  User* user_ = nullptr;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/descriptor.hpp"
#include "net/reactor.hpp"
#include "net/resolver.hpp"
#include "net/timer.hpp"
#include "net/tls.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// One connection to one Redis, or one Sentinel: resolves, connects, greets, then carries bytes out
/// and replies in. Who owns it decides when to open it again.
class Link final : public net::Watcher, private net::Timer {
 public:
  class Listener {
   public:
    virtual void OnLinkUp(const Greeting& greeting) = 0;
    virtual void OnLinkReply(const Reply& reply) = 0;
    virtual void OnLinkPush(const Reply& push) = 0;
    /// After it was opened; `problem` is for people. Not after Close.
    virtual void OnLinkDown(ErrorKind kind, const std::string& problem) = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    Endpoint endpoint = {};
    std::string what = "Redis";                           ///< What people call it.
    std::shared_ptr<const net::TlsClient> tls = nullptr;  ///< nullptr: without.
    std::string server_name = {};  ///< What its certificate must be for; empty: its host.
    Greeting::Options greeting;
    /// For all of it: the name, the connection, the greeting.
    std::chrono::microseconds connect_timeout = std::chrono::milliseconds{250};
  };

  Link(net::Reactor& reactor, const Options& options, Listener& listener);
  ~Link() override;

  /// REQUIRES: closed.
  void Open();
  void Close() noexcept;
  [[nodiscard]] bool up() const noexcept { return state_ == State::kUp; }
  [[nodiscard]] bool closed() const noexcept { return state_ == State::kClosed; }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return options_.endpoint; }
  /// `Redis at 10.0.0.5:6379`.
  [[nodiscard]] std::string Shown() const {
    return options_.what + " at " + options_.endpoint.Shown();
  }

  /// Bytes for Redis; they leave with Flush. REQUIRES: up.
  [[nodiscard]] std::string& out() noexcept { return out_; }
  void Flush();
  /// Ends a connection that is of no use any more, and says so.
  void Fail(ErrorKind kind, const std::string& problem);

  void OnReady(std::uint32_t events) override;

 private:
  enum class State : std::uint8_t { kClosed, kResolving, kConnecting, kHandshake, kGreeting, kUp };

  void OnTimer(net::Timer::Clock::time_point now) override;
  void ConnectNext();
  void OnConnected();
  /// Of TLS.
  void Shake();
  void Greet() {
    state_ = State::kGreeting;
    greeting_.Begin(out_);
    Flush();
  }
  /// Calls `io`, a system call, until it is not interrupted.
  template <class Io>
  [[nodiscard]] ssize_t Try(Io io);
  /// Return the number of bytes, 0 at the end, net::kIoWait or net::kIoBroken.
  [[nodiscard]] ssize_t Read(char* data, std::size_t size);
  [[nodiscard]] ssize_t Write(std::string_view bytes);
  void Broke();
  void Receive(std::uint32_t events);
  /// False: the connection is gone.
  bool Take(const Reply& reply);

  net::Reactor& reactor_;
  const Options options_;
  Listener& listener_;
  net::Resolver resolver_;
  Greeting greeting_;
  State state_ = State::kClosed;
  std::uint64_t generation_ = 0;  ///< Grows with every connection: listeners may open and close.
  std::vector<net::SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  std::size_t attempts_ = 0;  ///< Since it was up last.
  std::string last_problem_;
  net::Descriptor fd_;
  std::unique_ptr<net::TlsSession> tls_;
  std::string io_problem_;
  bool answered_ = false;  ///< Anything at all, since it was opened.
  RespReader reader_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace tidegate::redis

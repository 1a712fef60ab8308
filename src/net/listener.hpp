// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "net/deadlines.hpp"
#include "net/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/reactor.hpp"
#include "net/tls_server.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// Whether nobody else listens there; the sockets themselves share the port and could not tell.
[[nodiscard]] Result<void> CheckFree(const Endpoint& endpoint);
/// A listening socket that shares its port with those of the other reactors.
[[nodiscard]] Result<Descriptor> Listen(const Endpoint& endpoint);

/// Counters of a listener; read from any thread.
struct HttpStats {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> shed{0};      ///< Connections beyond the limit.
  std::atomic<std::uint64_t> open{0};      ///< Connections now.
  std::atomic<std::uint64_t> requests{0};  ///< Handed to the handler.
  std::atomic<std::uint64_t> refused{0};   ///< Not HTTP, too large, too slow.

  /// One writer, so no locked instruction.
  static void Add(std::atomic<std::uint64_t>& counter) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// Answers by the class of their status, 1xx to 5xx; read from any thread.
struct AnswerCounts {
  static constexpr std::size_t kClasses = 5;
  std::array<std::atomic<std::uint64_t>, kClasses> by_class{};

  /// REQUIRES: 100 to 599.
  void Add(int status) noexcept {
    HttpStats::Add(by_class[static_cast<unsigned>(status) / 100 - 1]);
  }
};

/// What a listener accepted. It owns itself: it says to the listener when it is over.
class Connection : public Watcher,
                   public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual void Start() = 0;
  /// Ends the connection after the request under way; an idle one a moment later, in case a
  /// request is on its way already.
  virtual void Drain() = 0;
  /// Now, in the middle of whatever it is.
  virtual void Close() = 0;
};

/// Who has come, when all that stands before a door's own protocol is over.
struct Accepted {
  Descriptor socket;
  Peer peer;
  std::unique_ptr<TlsSession> tls;  ///< nullptr: none.
};

/// Accepts connections for one reactor. Everything but stats() on its thread.
class Listener : public Watcher, public Deadlines::Node {
 public:
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;      ///< Of all that share `open`.
    std::atomic<std::size_t>* open = nullptr;  ///< REQUIRES: outlives the listener.
    /// Every connection begins with a header of the PROXY protocol, and comes from somebody whom
    /// Trust accepts; others are closed.
    bool proxy_protocol = false;
  };
  using Trusts = std::function<bool(const Peer& peer)>;

  Listener(Reactor& reactor, Descriptor socket, const Options& options);
  ~Listener() override;

  void Start();
  /// TLS for connections from now on. REQUIRES: there always was some, or never.
  void Use(std::shared_ptr<const TlsServer> tls) { tls_ = std::move(tls); }
  /// Who may speak for others, from now on.
  void Trust(Trusts trusts) { trusts_ = std::move(trusts); }
  /// Accepts no more, ends all connections in good order, then calls `drained`.
  void Drain(std::function<void()> drained);

  /// Ends all connections at once, whatever they are doing.
  void CloseAll();

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }
  [[nodiscard]] HttpStats& stats() noexcept { return stats_; }
  /// nullptr: the door counts its answers itself, or they have no status.
  [[nodiscard]] virtual const AnswerCounts* answers() const noexcept { return nullptr; }
  [[nodiscard]] Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  /// A connection is over: it is deleted when nothing can refer to it any more.
  void OnGone(Connection& connection);
  [[nodiscard]] const std::shared_ptr<const TlsServer>& tls() const noexcept { return tls_; }
  [[nodiscard]] const Trusts& trusts() const noexcept { return trusts_; }
  /// `welcome` has done its part: the door's own connection takes its place.
  void OnWelcomed(Connection& welcome, Accepted accepted);

  /// What a client is told, in the door's own protocol, before it is sent away: that there are too
  /// many,
  [[nodiscard]] virtual std::string_view shed_text() const noexcept = 0;
  /// or that it should have spoken TLS.
  [[nodiscard]] virtual std::string_view needs_tls_text() const noexcept = 0;

 protected:
  [[nodiscard]] virtual Connection* NewConnection(Accepted accepted) = 0;

 private:
  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  void Adopt(Descriptor socket, const sockaddr_storage& address);

  Reactor& reactor_;
  Descriptor socket_;
  const Options options_;
  std::shared_ptr<const TlsServer> tls_;
  Trusts trusts_;
  HttpStats stats_;
  std::size_t open_ = 0;
  bool draining_ = false;
  std::function<void()> drained_;
  boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>> connections_;
};

}  // namespace tidegate::net

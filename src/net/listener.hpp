// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <functional>

#include "net/deadlines.hpp"
#include "net/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/http1_parser.hpp"
#include "net/http_exchange.hpp"
#include "net/reactor.hpp"
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

/// Accepts connections for one reactor. Everything but stats() on its thread.
class Listener : public Watcher, public Deadlines::Node {
 public:
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;      ///< Of all that share `open`.
    std::atomic<std::size_t>* open = nullptr;  ///< REQUIRES: outlives the listener.
  };

  Listener(Reactor& reactor, Descriptor socket, const Options& options);
  ~Listener() override;

  void Start();
  /// Accepts no more, ends all connections in good order, then calls `drained`.
  void Drain(std::function<void()> drained);

  /// Ends all connections at once, whatever they are doing.
  void CloseAll();

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }
  [[nodiscard]] HttpStats& stats() noexcept { return stats_; }
  [[nodiscard]] Reactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool draining() const noexcept { return draining_; }
  /// A connection is over: it is deleted when nothing can refer to it any more.
  void OnGone(Connection& connection);

 protected:
  [[nodiscard]] virtual Connection* NewConnection(Descriptor socket, const Peer& peer) = 0;

 private:
  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  void Adopt(Descriptor socket, const sockaddr_storage& address);

  Reactor& reactor_;
  Descriptor socket_;
  const Options options_;
  HttpStats stats_;
  std::size_t open_ = 0;
  bool draining_ = false;
  std::function<void()> drained_;
  boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>> connections_;
};

}  // namespace tidegate::net

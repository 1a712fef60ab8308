// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <functional>

#include "net/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/http_connection.hpp"
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

/// Accepts HTTP connections for one reactor. Everything but stats() on its thread.
class HttpListener final : public Watcher, public Deadlines::Node {
 public:
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;      ///< Of all that share `open`.
    std::atomic<std::size_t>* open = nullptr;  ///< REQUIRES: outlives the listener.
  };

  HttpListener(Reactor& reactor, Descriptor socket, HttpHandler& handler, const Options& options);
  ~HttpListener() override;

  void Start();
  /// Accepts no more, ends all connections in good order, then calls `drained`.
  void Drain(std::function<void()> drained);

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }

 private:
  friend class HttpConnection;

  void OnReady(std::uint32_t events) override;
  void OnDeadline(Deadlines::Kind kind) override;
  void Adopt(Descriptor socket);
  void OnGone(HttpConnection& connection);

  Reactor& reactor_;
  Descriptor socket_;
  HttpHandler& handler_;
  const Options options_;
  HttpStats stats_;
  std::size_t open_ = 0;
  bool draining_ = false;
  std::function<void()> drained_;
  boost::intrusive::list<HttpConnection, boost::intrusive::constant_time_size<false>> connections_;
};

}  // namespace tidegate::net

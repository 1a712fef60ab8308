// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http_connection.hpp"
#include "net/reactor.hpp"
#include "tidegate/error.hpp"

namespace tidegate::net {

/// `127.0.0.1:8081`, `[::1]:8081`.
[[nodiscard]] Result<boost::asio::ip::tcp::endpoint> ParseEndpoint(const std::string& text);
[[nodiscard]] std::string EndpointText(const boost::asio::ip::tcp::endpoint& endpoint);

/// Whether nobody else listens there; the sockets themselves share the port and could not tell.
[[nodiscard]] Result<void> CheckFree(const boost::asio::ip::tcp::endpoint& endpoint);
/// A listening socket that shares its port with those of the other reactors.
[[nodiscard]] Result<boost::asio::ip::tcp::acceptor> Listen(
    boost::asio::io_context& context, const boost::asio::ip::tcp::endpoint& endpoint);

/// Counters of a listener; read from any thread.
struct HttpStats {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> shed{0};      ///< Connections beyond the limit.
  std::atomic<std::uint64_t> open{0};      ///< Connections now.
  std::atomic<std::uint64_t> requests{0};  ///< Handed to the handler.
  std::atomic<std::uint64_t> refused{0};   ///< Not HTTP, too large, too slow.

  /// One writer, so no locked instruction.
  static void Add(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

/// Accepts HTTP connections for one reactor. Everything but stats() on its thread.
class HttpListener {
 public:
  struct Options {
    HttpLimits limits;
    std::size_t max_connections = 20'000;
  };

  HttpListener(Reactor& reactor, boost::asio::ip::tcp::acceptor acceptor, HttpHandler& handler,
               const Options& options);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  void Start();
  /// Accepts no more, ends all connections in good order, then calls `drained`.
  void Drain(std::function<void()> drained);

  [[nodiscard]] const HttpStats& stats() const noexcept { return stats_; }

 private:
  friend class HttpConnection;

  void Accept();
  void Adopt(boost::asio::ip::tcp::socket socket);
  void OnGone();

  Reactor& reactor_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer backoff_;
  HttpHandler& handler_;
  const Options options_;
  HttpStats stats_;
  std::size_t open_ = 0;
  bool draining_ = false;
  std::function<void()> drained_;
  boost::intrusive::list<HttpConnection, boost::intrusive::constant_time_size<false>> connections_;
};

}  // namespace tidegate::net

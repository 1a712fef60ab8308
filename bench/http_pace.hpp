// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// Sends requests at a steady rate to several servers in turn, over keep-alive connections, whether
/// or not earlier requests have been answered. A request waits if no connection is free. Latency
/// counts from the time at which a request should have been sent. One thread with one epoll
/// instance.
class HttpPace {
 public:
  struct Outcome {
    std::vector<double> micros;  ///< Latency of each response in microseconds, sorted.
    std::uint64_t ok = 0;        ///< Responses with status 200.
    std::uint64_t exact = 0;     ///< Decisions made by Redis, not by a failure policy.
    double seconds = 0;          ///< Time until the last response.
  };

  /// `request(i)` returns the bytes of the i-th request.
  HttpPace(const std::vector<int>& ports, int connections_each,
           std::function<const std::string&(std::uint64_t)> request);

  Outcome Run(double per_second, double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  struct Server;
  struct Connection {
    net::Descriptor fd;
    Server* server = nullptr;
    std::string received;
    Clock::time_point intended;
  };
  struct Server {
    std::deque<Connection> connections;
    std::vector<Connection*> free;
    std::deque<Clock::time_point> waiting;  ///< Times at which the waiting requests should have
                                            ///< been sent.
  };

  void Open(Connection& connection, int port);
  void Offer(Server& server, Clock::time_point intended);
  void Send(Connection& connection, Clock::time_point intended);
  void OnReadable(Connection& connection);

  std::function<const std::string&(std::uint64_t)> request_;
  net::Descriptor epoll_;
  std::deque<Server> servers_;
  std::uint64_t sent_ = 0;
  Outcome outcome_;
};

}  // namespace tidegate::bench

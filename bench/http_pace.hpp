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

/// Requests at a steady rate to several servers in turn, over keep-alive connections, whether or
/// not those before are answered: one that finds no free connection waits for one. How long each
/// takes counts from when it should have been sent. One thread, one epoll.
class HttpPace {
 public:
  struct Outcome {
    std::vector<double> micros;  ///< Sorted.
    std::uint64_t ok = 0;        ///< Status 200.
    std::uint64_t exact = 0;     ///< Answered by Redis, not by a failure policy.
    double seconds = 0;          ///< Until the last answer.
  };

  /// `request(i)`: the i-th request's bytes.
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
    std::deque<Clock::time_point> waiting;  ///< When they should have been sent.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::bench {

/// Returns the number of bytes of the first response in `text`; 0 if it is incomplete.
[[nodiscard]] std::size_t AnswerBytes(std::string_view text);

/// Keep-alive connections that each send a request, wait for its response and send the next one.
/// One thread with one epoll instance.
class HttpLoad {
 public:
  /// Whether all connections come from 127.0.0.1 or each from another address, as those of real
  /// clients.
  enum class Addresses : std::uint8_t { kOne, kOneEach };

  /// `request(i)` returns the bytes of the i-th request.
  HttpLoad(int port, int connections, std::function<const std::string&(std::uint64_t)> request,
           Addresses addresses = Addresses::kOne);
  ~HttpLoad();

  struct Outcome {
    std::uint64_t answers = 0;
    std::uint64_t ok = 0;      ///< Responses with status 200.
    std::uint64_t failed = 0;  ///< Connections that broke; they are opened again.
  };
  /// Sends requests for `seconds` and then waits for the responses to pending requests.
  Outcome Run(double seconds);

 private:
  struct Connection {
    int fd = -1;
    std::string received;
    bool waiting = false;
  };
  void Open(Connection& connection);
  void Send(Connection& connection);
  void OnReadable(Connection& connection);

  const int port_;
  const Addresses addresses_;
  std::function<const std::string&(std::uint64_t)> request_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  std::uint64_t sent_ = 0;
  std::uint64_t open_requests_ = 0;
  bool sending_ = false;
  Outcome outcome_;
};

}  // namespace tidegate::bench

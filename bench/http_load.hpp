// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::bench {

/// The bytes of the first answer in `text`; 0: not all there yet.
[[nodiscard]] std::size_t AnswerBytes(std::string_view text);

/// Keep-alive connections that each send a request, wait for its answer and send the next: one
/// thread, one epoll.
class HttpLoad {
 public:
  /// From 127.0.0.1, or each from an address of its own, as clients come.
  enum class Addresses : std::uint8_t { kOne, kOneEach };

  /// `request(i)`: the i-th request's bytes.
  HttpLoad(int port, int connections, std::function<const std::string&(std::uint64_t)> request,
           Addresses addresses = Addresses::kOne);
  ~HttpLoad();

  struct Outcome {
    std::uint64_t answers = 0;
    std::uint64_t ok = 0;      ///< Status 200.
    std::uint64_t failed = 0;  ///< Connections that broke; they are opened again.
  };
  /// Sends for so long. Answers under way at the end are waited for.
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

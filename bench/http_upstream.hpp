// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// A server for use behind proxies. Sends the same small response to every request, with as little
/// work as possible. One thread with one epoll instance, on 127.0.0.1. Does not support requests
/// with bodies.
class HttpUpstream {
 public:
  explicit HttpUpstream(int core);
  ~HttpUpstream();
  HttpUpstream(const HttpUpstream&) = delete;
  HttpUpstream& operator=(const HttpUpstream&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  /// Returns the number of requests answered so far.
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }

 private:
  struct Connection {
    net::Descriptor fd;
    std::string received;
  };
  void Serve();
  void Accept();
  /// Answers the requests that have arrived. Returns false if the connection has ended.
  bool Answer(Connection& connection);

  net::Descriptor listener_;
  net::Descriptor stop_;
  net::Descriptor epoll_;
  int port_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  std::unordered_map<int, Connection> connections_;
  std::thread thread_;
};

}  // namespace tidegate::bench

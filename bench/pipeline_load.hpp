// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// Redis clients that send commands in pipelines and wait for all answers of one before the next:
/// one thread, several connections in turn, so that the server always has something to do.
/// redis-benchmark can do as much, but draws keys in its own way only.
class PipelineLoad {
 public:
  /// `append(to)`: the next command, as sent. Each must be answered with an array that holds none.
  PipelineLoad(int port, int connections, std::function<void(std::string& to)> append,
               int pipeline = 32);

  /// Sends for so long; how many commands. Throws where an answer is an error.
  std::uint64_t Run(double seconds);

 private:
  void Send(const net::Descriptor& connection);
  void Receive(const net::Descriptor& connection);

  const int pipeline_;
  std::function<void(std::string&)> append_;
  std::vector<net::Descriptor> connections_;
  std::string out_;
  std::vector<char> in_;
};

}  // namespace tidegate::bench

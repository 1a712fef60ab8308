// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// Redis clients that send commands in pipelines and wait for all replies of a pipeline before
/// sending the next. One thread serves several connections in turn, so that the server is never
/// idle. Unlike redis-benchmark, this class lets the caller choose the keys.
class PipelineLoad {
 public:
  /// `append(to)` appends the next command as sent. Each reply must be an array without nested
  /// arrays.
  PipelineLoad(int port, int connections, std::function<void(std::string& to)> append,
               int pipeline = 32);

  /// Sends commands for `seconds` and returns their number. Throws if a reply is an error.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "gateway/upstream.hpp"
#include "net/channel.hpp"
#include "net/reactor.hpp"

namespace tidegate {

/// Looks after upstreams whether there is traffic or not: looks their names up anew and asks their
/// members how they are. One per process, on one reactor; what it finds all reactors see.
class UpstreamCare {
 public:
  UpstreamCare(net::Reactor& reactor, net::BufferPool& buffers);
  ~UpstreamCare();
  UpstreamCare(const UpstreamCare&) = delete;
  UpstreamCare& operator=(const UpstreamCare&) = delete;

  /// These from now on. Those that it looked after already go on as they were.
  void Use(const Upstreams& upstreams);

 private:
  class Carer;
  net::Reactor& reactor_;
  net::BufferPool& buffers_;
  std::vector<std::unique_ptr<Carer>> carers_;
};

}  // namespace tidegate

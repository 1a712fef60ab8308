// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/reactor.hpp"

namespace tidegate::redis {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// Names -> addresses without keeping a reactor: the system's resolver waits, so names are looked
/// up on a thread of their own. Numbers are answered at once.
class Resolver {
 public:
  using Done = std::function<void(std::vector<Address> addresses, std::string problem)>;

  explicit Resolver(net::Reactor& reactor);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// `done` is called on the reactor's thread, maybe before this returns; never after Forget.
  void Resolve(const std::string& host, std::uint16_t port, Done done);
  void Forget() noexcept;

 private:
  /// What the thread may still touch when the resolver is gone.
  struct Shared {
    std::mutex mutex;
    net::Reactor* reactor;
    std::uint64_t wanted = 0;  ///< Which question is still of interest.
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace tidegate::redis

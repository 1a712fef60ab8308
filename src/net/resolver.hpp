// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/reactor.hpp"

namespace tidegate::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// The result of a lookup.
struct Found {
  std::vector<SocketAddress> addresses;
  std::string problem;  ///< Why there are no addresses.
};
enum class Lookup : std::uint8_t { kNumber, kName };
/// Looks up `host`. Blocks until name servers respond, except for numeric addresses.
[[nodiscard]] Found LookUp(const std::string& host, std::uint16_t port, Lookup lookup);

/// Looks up a name without blocking a reactor: on a separate thread, since the system's resolver
/// blocks. Numeric addresses are returned at once. A result that arrives after Forget is kept for
/// the next call, so that a slow lookup is not wasted.
class Resolver {
 public:
  using Done =
      std::function<void(std::vector<SocketAddress> addresses, const std::string& problem)>;

  explicit Resolver(Reactor& reactor);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `done` on the reactor's thread, perhaps before Resolve returns, but not after Forget.
  /// REQUIRES: every call has the same name.
  void Resolve(const std::string& host, std::uint16_t port, Done done);
  void Forget() noexcept { done_ = nullptr; }

 private:
  /// The data that the lookup thread may use after the resolver is deleted.
  struct Shared {
    std::mutex mutex;
    Resolver* owner;  ///< nullptr: the resolver was deleted.
    Reactor* reactor;
  };
  void OnFound(Found found) {
    looking_ = false;
    if (!done_) {
      kept_ = std::move(found);
      return;
    }
    const Done done = std::exchange(done_, nullptr);
    done(std::move(found.addresses), found.problem);
  }

  std::shared_ptr<Shared> shared_;
  bool looking_ = false;
  Done done_;
  std::optional<Found> kept_;
};

}  // namespace tidegate::net

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

/// What a look-up came to.
struct Found {
  std::vector<SocketAddress> addresses;
  std::string problem;  ///< Where there are none.
};
enum class Lookup : std::uint8_t { kNumber, kName };
/// Waits for name servers where it must; never for a number.
[[nodiscard]] Found LookUp(const std::string& host, std::uint16_t port, Lookup lookup);

/// Names -> addresses without keeping a reactor: the system's resolver waits, so names are looked
/// up on a thread of their own, one at a time. Numbers are answered at once. An answer that comes
/// when nobody waits for it any more is kept for the next who asks: a slow name server is found in
/// the end.
class Resolver {
 public:
  using Done =
      std::function<void(std::vector<SocketAddress> addresses, const std::string& problem)>;

  explicit Resolver(Reactor& reactor);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// `done` is called on the reactor's thread, maybe before this returns; never after Forget.
  /// Always for the same name.
  void Resolve(const std::string& host, std::uint16_t port, Done done);
  void Forget() noexcept { done_ = nullptr; }

 private:
  /// What the thread may still touch when the resolver is gone.
  struct Shared {
    std::mutex mutex;
    Resolver* owner;  ///< nullptr: gone.
    Reactor* reactor;
  };
  void OnFound(Found found);

  std::shared_ptr<Shared> shared_;
  bool looking_ = false;
  Done done_;
  std::optional<Found> kept_;
};

}  // namespace tidegate::net

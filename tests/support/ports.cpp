// SPDX-License-Identifier: Apache-2.0
#include "support/ports.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

namespace tidegate::test {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

constexpr int kFirstPort = 10'000;
/// The kernel assigns ports from 32,768 on to outgoing connections (net.ipv4.ip_local_port_range).
constexpr int kLastPort = 32'767;
constexpr int kBusDistance = 10'000;

bool IsFree(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

/// Reserves `port` for this test process until it ends, and returns whether that succeeded. The
/// reservation is an abstract Unix socket, which the kernel closes however the process ends.
bool Reserve(int port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "tidegate-test-port-" + std::to_string(port);
  text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) == 0) return true;
  close(fd);
  return false;
}

int FreePortBelow(int end, bool with_bus) {
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = std::uniform_int_distribution(kFirstPort, end - 1)(random);
    if (IsFree(port) && Reserve(port) &&
        (!with_bus || (IsFree(port + kBusDistance) && Reserve(port + kBusDistance)))) {
      return port;
    }
  }
  throw std::runtime_error("no free port found on 127.0.0.1 in 1000 tries");
}

}  // namespace

int FreePort() { return FreePortBelow(kLastPort + 1, false); }

int FreeClusterPort() { return FreePortBelow(kLastPort + 1 - kBusDistance, true); }

int ConnectTo(int port, const char* from) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = Loopback(0);
  const sockaddr_in to = Loopback(port);
  if ((*from != '\0' && (inet_pton(AF_INET, from, &own.sin_addr) != 1 ||
                         bind(fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)) ||
      connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace tidegate::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate::net {

/// An address and a port, IPv4 or IPv6.
class Endpoint {
 public:
  Endpoint() = default;
  /// Parses an address with a port, such as `127.0.0.1:8081`, `[::1]:8081` or `localhost:8081`.
  [[nodiscard]] static Result<Endpoint> Parse(std::string_view text);
  /// Returns the local address of a socket.
  [[nodiscard]] static Endpoint OfSocket(int socket);
  /// Returns the address that accept4 wrote.
  [[nodiscard]] static Endpoint Of(const sockaddr_storage& storage) noexcept {
    Endpoint endpoint;
    endpoint.storage_ = storage;
    return endpoint;
  }

  [[nodiscard]] std::string Text() const;
  [[nodiscard]] std::uint16_t port() const noexcept {
    // The port is at the same offset in both families.
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  }
  [[nodiscard]] bool IsLoopback() const noexcept;
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  /// Returns the address as 16 bytes, IPv4 mapped into IPv6.
  [[nodiscard]] std::array<unsigned char, 16> Bytes() const noexcept;

  [[nodiscard]] const sockaddr* address() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  [[nodiscard]] socklen_t size() const noexcept {
    return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }

 private:
  /// Returns the bytes of the address.
  [[nodiscard]] void* ip() noexcept {
    return family() == AF_INET6
               ? static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_addr)
               : &reinterpret_cast<sockaddr_in*>(&storage_)->sin_addr;
  }
  [[nodiscard]] const void* ip() const noexcept { return const_cast<Endpoint*>(this)->ip(); }

  sockaddr_storage storage_{};
};

}  // namespace tidegate::net

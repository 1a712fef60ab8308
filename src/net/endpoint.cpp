// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace tidegate::net {
namespace {

std::unexpected<Error> Bad(std::string_view text) {
  return std::unexpected(
      Error{ErrorCode::kNetwork, "\"" + std::string(text) +
                                     "\" is not an address with a port: write 127.0.0.1:8081 or "
                                     "[::1]:8081"});
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Bad(text);
  std::string host(text.substr(0, colon));
  std::uint16_t port = 0;
  const char* const digits = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(digits, end, port);
  if (wrong != std::errc{} || rest != end || digits == end) return Bad(text);
  if (host == "localhost") host = "127.0.0.1";
  Endpoint endpoint;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1) {
      return Bad(text);
    }
    std::memcpy(&endpoint.storage_, &v6, sizeof v6);
    return endpoint;
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return Bad(text);
  std::memcpy(&endpoint.storage_, &v4, sizeof v4);
  return endpoint;
}

Endpoint Endpoint::OfSocket(int socket) {
  Endpoint endpoint;
  socklen_t size = sizeof endpoint.storage_;
  (void)getsockname(socket, reinterpret_cast<sockaddr*>(&endpoint.storage_), &size);
  return endpoint;
}

std::uint16_t Endpoint::port() const noexcept {
  // The port stands at the same place in both.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

std::array<unsigned char, 16> Endpoint::Bytes() const noexcept {
  std::array<unsigned char, 16> bytes{};
  if (family() == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, 16);
  } else {
    bytes[10] = bytes[11] = 0xFF;
    std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, 4);
  }
  return bytes;
}

bool Endpoint::IsLoopback() const noexcept {
  const auto bytes = Bytes();
  constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::memcmp(bytes.data(), kMapped.data(), kMapped.size()) == 0) return bytes[12] == 127;
  for (std::size_t i = 0; i < 15; ++i) {
    if (bytes[i] != 0) return false;
  }
  return bytes[15] == 1;
}

std::string Endpoint::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text,
              sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(port());
}

}  // namespace tidegate::net

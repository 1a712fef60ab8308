// SPDX-License-Identifier: Apache-2.0
#include "net/endpoint.hpp"

#include <arpa/inet.h>

#include <bit>
#include <cstring>
#include <expected>

#include "base/units.hpp"

namespace tidegate::net {
namespace {

std::unexpected<Error> Bad(std::string_view text) {
  return std::unexpected(
      Error{ErrorCode::kNetwork,
            "\"" + std::string(text) +
                "\" is not an address with a port: write 127.0.0.1:8081 or [::1]:8081"});
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Bad(text);
  std::string host(text.substr(0, colon));
  const auto port = ParseNumber<std::uint16_t>(text.substr(colon + 1));
  if (!port) return Bad(text);
  if (host == "localhost") host = "127.0.0.1";
  Endpoint endpoint;
  const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (v6) host = host.substr(1, host.size() - 2);
  endpoint.storage_.ss_family = v6 ? AF_INET6 : AF_INET;
  // The port is at the same offset in both families.
  reinterpret_cast<sockaddr_in*>(&endpoint.storage_)->sin_port = htons(*port);
  if (inet_pton(endpoint.family(), host.c_str(), endpoint.ip()) != 1) return Bad(text);
  return endpoint;
}

Endpoint Endpoint::OfSocket(int socket) {
  Endpoint endpoint;
  socklen_t size = sizeof endpoint.storage_;
  (void)getsockname(socket, reinterpret_cast<sockaddr*>(&endpoint.storage_), &size);
  return endpoint;
}

std::array<unsigned char, 16> Endpoint::Bytes() const noexcept {
  std::array<unsigned char, 16> bytes{};
  if (family() == AF_INET6) {
    std::memcpy(bytes.data(), ip(), 16);
  } else {
    bytes[10] = bytes[11] = 0xFF;
    std::memcpy(bytes.data() + 12, ip(), 4);
  }
  return bytes;
}

bool Endpoint::IsLoopback() const noexcept {
  const auto bytes = std::bit_cast<in6_addr>(Bytes());
  return IN6_IS_ADDR_LOOPBACK(&bytes) || (IN6_IS_ADDR_V4MAPPED(&bytes) && bytes.s6_addr[12] == 127);
}

std::string Endpoint::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v6 = family() == AF_INET6;
  inet_ntop(v6 ? AF_INET6 : AF_INET, ip(), text, sizeof text);
  return (v6 ? "[" + std::string(text) + "]:" : std::string(text) + ":") + std::to_string(port());
}

}  // namespace tidegate::net

// SPDX-License-Identifier: Apache-2.0
#include "cli/server_address.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"

namespace tidegate::cli {
namespace {

constexpr std::string_view kForm =
    "is not the address of a server: write HOST:PORT, as in 127.0.0.1:9180 or [::1]:9180, "
    "or https://HOST:PORT";

/// Returns true if `host` has no character that could end a Host field or hide in a message.
bool IsHost(std::string_view host) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";
  return !host.empty() && host.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

Result<ServerAddress> ServerAddress::Parse(std::string_view text, std::uint16_t default_port) {
  const auto refuse = [&](std::string_view why = kForm) {
    return Failure(ErrorCode::kNetwork, "\"" + Printable(text) + "\" " + std::string(why));
  };
  std::string_view rest = text;
  ServerAddress address;
  address.port = default_port;
  const auto takes = [&rest](std::string_view scheme) {
    if (!EqualsIgnoreCase(rest.substr(0, scheme.size()), scheme)) return false;
    rest.remove_prefix(scheme.size());
    return true;
  };
  address.tls = takes("https://");
  if (!address.tls) (void)takes("http://");
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.contains('/')) return refuse("has a path: write only HOST:PORT");
  if (rest.empty()) return refuse();
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return refuse();
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    // Without brackets, several colons are those of an IPv6 address without a port.
    const std::size_t colon =
        std::ranges::count(rest, ':') == 1 ? rest.find(':') : std::string_view::npos;
    address.host = colon == 0 ? "127.0.0.1" : rest.substr(0, colon);
    rest.remove_prefix(std::min(colon, rest.size()));
  }
  if (!IsHost(address.host)) return refuse();
  if (rest.empty()) return address;
  if (rest.front() != ':' || rest.size() == 1) return refuse();
  const auto port = ParseNumber<std::uint16_t>(rest.substr(1), 1);
  if (!port) return refuse("has no port between 1 and 65535");
  address.port = *port;
  return address;
}

std::string ServerAddress::Text() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string ServerAddress::CertifiedName() const {
  if (host.find(':') != std::string::npos) return host.substr(0, host.find('%'));
  return host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
}

}  // namespace tidegate::cli

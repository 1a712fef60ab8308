// SPDX-License-Identifier: Apache-2.0
#include "cli/server_address.hpp"

#include <algorithm>
#include <charconv>

#include "rules/printable.hpp"
#include "rules/request_view.hpp"

namespace tidegate::cli {
namespace {

std::unexpected<Error> RefuseServer(std::string_view text, std::string_view why) {
  return std::unexpected(
      Error{ErrorCode::kNetwork, "\"" + Printable(text) + "\" " + std::string(why)});
}

constexpr std::string_view kForm =
    "is not where a server listens: write HOST:PORT, as in 127.0.0.1:9180 or [::1]:9180, "
    "or https://HOST:PORT";

bool ReadPort(std::string_view text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && rest == end && port != 0;
}

/// Nothing that could end a Host field or hide in a message.
bool IsHost(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '%';
  });
}

}  // namespace

Result<ServerAddress> ServerAddress::Parse(std::string_view text, std::uint16_t default_port) {
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
  if (rest.contains('/'))
    return RefuseServer(text, "has a path: a server has none, only HOST:PORT");
  if (rest.empty()) return RefuseServer(text, kForm);
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return RefuseServer(text, kForm);
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && (rest.front() != ':' || rest.size() == 1))
      return RefuseServer(text, kForm);
    if (!rest.empty()) port = rest.substr(1);
  } else if (std::ranges::count(rest, ':') == 1) {
    const std::size_t colon = rest.find(':');
    address.host = colon == 0 ? "127.0.0.1" : rest.substr(0, colon);
    port = rest.substr(colon + 1);
    if (port.empty()) return RefuseServer(text, kForm);
  } else {
    address.host = rest;  // A name; or several colons, an IPv6 address without a port.
  }
  if (!IsHost(address.host)) return RefuseServer(text, kForm);
  if (!port.empty() && !ReadPort(port, address.port)) {
    return RefuseServer(text, "has no port between 1 and 65535");
  }
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

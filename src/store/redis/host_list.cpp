// SPDX-License-Identifier: Apache-2.0
#include "store/redis/host_list.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "core/refuse.hpp"
#include "store/redis/decimal.hpp"

namespace tidegate::redis {
namespace {

constexpr std::size_t kMaxHost = 253;  // RFC 1035, 2.3.4, as text.
constexpr std::size_t kMaxLabel = 63;

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }
bool IsLetter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Letters, digits, `-` and `_` (which names of containers have) in labels divided by dots. A name
/// whose last label is a number is an IPv4 address or a mistake: DNS has no such.
bool IsHost(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  std::string_view label;
  for (std::string_view rest = host; label.data() == nullptr || !rest.empty();) {
    const auto dot = std::min(rest.find('.'), rest.size());
    label = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    const bool good = !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
                      std::all_of(label.begin(), label.end(), [](char c) {
                        return IsLetter(c) || IsDigit(c) || c == '-' || c == '_';
                      });
    if (!good) return false;
  }
  if (!std::all_of(label.begin(), label.end(), IsDigit)) return true;
  in_addr address{};
  return ::inet_pton(AF_INET, std::string{host}.c_str(), &address) == 1;
}

bool IsIpv6(std::string_view host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string{host}.c_str(), &address) == 1;
}

Result<Endpoint> ParseHost(std::string_view text, std::uint16_t default_port) {
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  std::string_view host = text.substr(0, text.find(':'));
  std::string_view rest = text.substr(host.size());
  if (bracket != std::string_view::npos) {
    host = text.substr(1, bracket - 1);
    rest = text.substr(bracket + 1);
  } else if (rest.find(':', 1) != std::string_view::npos) {
    return Refuse(ErrorCode::kBadConfig,
                  "has several `:` after its host; an IPv6 address stands in brackets, as in "
                  "`redis://[::1]:6379`, and a `:` or `/` in a password is written `%3A` or `%2F`");
  }
  if (host.empty() && bracket == std::string_view::npos) {
    return Refuse(ErrorCode::kBadConfig, "names no host, as in `redis://127.0.0.1:6379`");
  }
  if (bracket != std::string_view::npos ? !IsIpv6(host) : !IsHost(host)) {
    return Refuse(ErrorCode::kBadConfig, "has a host that is neither a name nor an IP address");
  }
  Endpoint endpoint{.host = std::string(host), .port = default_port};
  if (rest.empty()) return endpoint;
  const auto port = rest.front() == ':' ? ParseDecimal(rest.substr(1), 1, 65'535) : std::nullopt;
  if (!port)
    return Refuse(ErrorCode::kBadConfig, "has a port that is not a number from 1 to 65535");
  endpoint.port = static_cast<std::uint16_t>(*port);
  return endpoint;
}

/// The same for all ways to write one host: DNS knows no case and no final dot, and an IPv6 address
/// may be written with all its zeros.
Endpoint Normal(Endpoint endpoint) {
  std::string& host = endpoint.host;
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) == 1) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    host = ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    return endpoint;
  }
  std::transform(host.begin(), host.end(), host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (host.ends_with('.')) host.pop_back();
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> ParseHostList(std::string_view text, std::uint16_t default_port) {
  const auto commas = static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
  if (commas >= kMaxHosts)
    return Refuse(ErrorCode::kBadConfig, "names more than 64 hosts; a few are enough");
  std::vector<Endpoint> hosts;
  std::set<Endpoint> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (begin == end && commas > 0) {
      return Refuse(ErrorCode::kBadConfig,
                    "has a `,` without a host before or after it; write one `,` between two hosts");
    }
    auto host = ParseHost(text.substr(begin, end - begin), default_port);
    if (!host) return std::unexpected(std::move(host).error());
    if (!seen.insert(Normal(*host)).second) {
      return Refuse(ErrorCode::kBadConfig, "names one host and port twice; name each once");
    }
    hosts.push_back(*std::move(host));
    begin = end + 1;
  }
  return hosts;
}

}  // namespace tidegate::redis

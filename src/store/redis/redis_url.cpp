// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "base/ascii.hpp"
#include "base/failure.hpp"

namespace tidegate::redis {
namespace {

using Mode = RedisUrl::Mode;

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr std::ptrdiff_t kMaxHosts = 64;  // Three or five sentinels or a few nodes are enough.
constexpr std::size_t kMaxHost = 253;     // RFC 1035, 2.3.4, as text.
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxMaster = 255;
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un has 108 bytes, one of them NUL.

/// Returns the scheme of URLs with hosts.
std::string SchemeOf(Mode mode, bool tls) {
  constexpr std::array<std::string_view, 3> kSuffixes = {"", "+sentinel", "+cluster"};
  return (tls ? "rediss" : "redis") + std::string(kSuffixes[static_cast<std::size_t>(mode)]);
}

std::unexpected<Error> Invalid(std::string why) {
  return Failure(ErrorCode::kBadConfig, std::move(why));
}

bool IsVisible(char c) noexcept { return c > ' ' && c < 127; }

/// Reads a number without a sign or a leading zero, which some programs take for octal.
std::optional<std::uint32_t> ReadDecimal(std::string_view text, std::uint32_t most) noexcept {
  if (text.size() > 1 && text.starts_with('0')) return std::nullopt;
  return ParseNumber<std::uint32_t>(text, 0, most);
}

/// Rejects an encoded NUL too: no path and no password contains it.
Result<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const auto [c, encoded] = TakeDecoded(text);
    if (c == (encoded ? '\0' : '%')) {
      return Invalid(
          "has a `%` that is not followed by two hexadecimal digits; a literal `%` is written "
          "`%25`");
    }
    decoded += c;
  }
  return decoded;
}

/// Encodes the characters that a log line or a URL cannot contain, and a `/` unless it is in a
/// path.
std::string PercentEncode(std::string_view text, bool is_path = false) {
  const std::string_view special = is_path ? "%@:?#" : "%@:?#/";
  std::string encoded;
  for (const char c : text) {
    std::array<char, 3> escape{c};
    const bool plain = IsVisible(c) && !special.contains(c);
    encoded.append(escape.data(), plain ? &escape[1] : WritePercentEncoded(escape.data(), c));
  }
  return encoded;
}

bool IsAddress(int family, const std::string& host) {
  in6_addr address{};
  return ::inet_pton(family, host.c_str(), &address) == 1;
}

bool IsLabel(std::string_view label) noexcept {
  return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
         std::ranges::all_of(label,
                             [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_'; });
}

/// Accepts labels of letters, digits, `-` and `_` (in names of containers), divided by dots. DNS
/// has no name whose last label is a number: such a host is an IPv4 address or a mistake.
bool IsHostName(std::string host) {
  if (host.size() > kMaxHost) return false;
  if (host.ends_with('.')) host.pop_back();
  std::string_view last;
  for (const auto label : std::views::split(std::string_view(host), '.')) {
    last = std::string_view(label);
    if (!IsLabel(last)) return false;
  }
  return !std::ranges::all_of(last, IsDigit) || IsAddress(AF_INET, host);
}

/// Reads `host[:port]`.
Result<Endpoint> ParseHost(std::string_view text, std::uint16_t default_port) {
  const bool brackets = text.starts_with('[') && text.contains(']');
  const std::string host(brackets ? text.substr(1, text.find(']') - 1)
                                  : text.substr(0, text.find(':')));
  text.remove_prefix(host.size() + (brackets ? 2 : 0));
  if (!brackets && text.find(':', 1) != std::string_view::npos) {
    return Invalid(
        "has several `:` after its host; an IPv6 address is written in brackets, as in "
        "`redis://[::1]:6379`, and a `:` or `/` in a password is written `%3A` or `%2F`");
  }
  if (!brackets && host.empty()) {
    return Invalid("names no host, as in `redis://127.0.0.1:6379`");
  }
  if (brackets ? !IsAddress(AF_INET6, host) : !IsHostName(host)) {
    return Invalid("has a host that is neither a name nor an IP address");
  }
  if (text.empty()) return Endpoint{.host = host, .port = default_port};
  const auto port = text.front() == ':' ? ReadDecimal(text.substr(1), 65'535) : std::nullopt;
  if (port.value_or(0) == 0) return Invalid("has a port that is not a number from 1 to 65535");
  return Endpoint{.host = host, .port = static_cast<std::uint16_t>(*port)};
}

/// Returns the same endpoint for all spellings of a host: DNS ignores case and a final dot, and an
/// IPv6 address may be written with all its zeros.
Endpoint Normal(Endpoint endpoint) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &address) == 1) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    endpoint.host = ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  } else {
    endpoint.host = Lowered(endpoint.host);
    if (endpoint.host.ends_with('.')) endpoint.host.pop_back();
  }
  return endpoint;
}

/// Reads `host[:port][,host[:port]...]`, each host once.
Result<std::vector<Endpoint>> ParseHostList(std::string_view text, std::uint16_t default_port) {
  const auto commas = std::ranges::count(text, ',');
  if (commas >= kMaxHosts) return Invalid("names more than 64 hosts; a few are enough");
  std::vector<Endpoint> hosts;
  std::set<Endpoint> seen;
  for (std::ptrdiff_t i = 0; i <= commas; ++i) {
    const std::string_view piece = TakeUntil(text, ',');
    if (piece.empty() && commas > 0) {
      return Invalid(
          "has a `,` without a host before or after it; write one `,` between two hosts");
    }
    auto host = ParseHost(piece, default_port);
    if (!host) return host.error();
    if (!seen.insert(Normal(*host)).second) {
      return Invalid("names one host and port twice; name each once");
    }
    hosts.push_back(*std::move(host));
  }
  return hosts;
}

/// Reads `user[:password]`.
Result<void> ReadUser(std::string_view text, RedisUrl& url) {
  if (text.contains('@')) {
    return Invalid(
        "has more than one `@`; write user and password once, before the first host, and an `@` in "
        "them as `%40`");
  }
  const auto user = PercentDecode(TakeUntil(text, ':'));
  const auto password = PercentDecode(text);
  if (!user) return user.error();
  if (!password) return password.error();
  if (user->empty() && password->empty()) {
    return Invalid("has an `@` without a user or password before it; write both, or neither");
  }
  url.user = *user;
  url.password = *password;
  return {};
}

/// Reads `[user[:password]@]host[:port][,host[:port]...]`.
Result<void> ReadAuthority(std::string_view text, RedisUrl& url) {
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    if (auto user = ReadUser(text.substr(0, at), url); !user) return user;
    text.remove_prefix(at + 1);
  }
  if (url.mode == Mode::kSingle && text.contains(',')) {
    const std::string scheme = SchemeOf(Mode::kSingle, url.tls);
    return Invalid("names several hosts, but `" + scheme +
                   "://` accepts one; for several hosts, write `" + scheme + "+sentinel://` or `" +
                   scheme + "+cluster://`");
  }
  auto hosts = ParseHostList(text, url.mode == Mode::kSentinel ? kSentinelPort : kRedisPort);
  if (!hosts) return hosts.error();
  url.hosts = *std::move(hosts);
  return {};
}

Result<void> ReadDatabase(std::string_view text, RedisUrl& url) {
  const auto database = ReadDecimal(text, INT32_MAX);
  if (!database) {
    return Invalid(
        "has a database that is not a number, as in `/2` after the host or master, or `?db=2` "
        "after a socket; a `/` in a password is written `%2F`");
  }
  url.database = static_cast<int>(*database);
  return {};
}

Result<void> ReadMaster(std::string_view text, RedisUrl& url) {
  auto master = PercentDecode(text);
  if (!master) return master.error();
  if (master->empty()) {
    return Invalid(
        "names no master; write the master's name after the sentinels, as in "
        "`redis+sentinel://h1,h2,h3/mymaster`");
  }
  if (master->size() > kMaxMaster || !std::ranges::all_of(*master, IsVisible)) {
    return Invalid(
        "has a master's name that is not of 1 to 255 printable ASCII characters without spaces");
  }
  url.master = *std::move(master);
  return {};
}

/// Reads `[master][/][database]`, the text after the hosts and a `/`.
Result<void> ReadPath(std::string_view path, RedisUrl& url) {
  if (url.mode == Mode::kSentinel) {
    if (auto master = ReadMaster(TakeUntil(path, '/'), url); !master) return master;
  } else if (url.mode == Mode::kCluster && !path.empty() && path != "0") {
    return Invalid(
        "has a path other than `/0` after its hosts: a Redis Cluster has only database 0, so "
        "remove the path");
  }
  return path.empty() ? Result<void>{} : ReadDatabase(path, url);
}

Result<void> ParseTcp(std::string_view text, RedisUrl& url) {
  if (text.find_first_of("?#") != std::string_view::npos) {
    return Invalid(
        "has a `?` or `#`: this URL has no options; the database is `/2` after the host or master, "
        "and in a password or a master's name these characters are written `%3F` and `%23`");
  }
  const std::string_view authority = TakeUntil(text, '/');
  if (text.contains('@')) {
    return Invalid(
        "has an `@` after a `/`; in a user, a password or a master's name these characters are "
        "written `%40` and `%2F`");
  }
  if (auto read = ReadAuthority(authority, url); !read) return read;
  return ReadPath(text, url);
}

Result<void> ParseUnix(std::string_view text, RedisUrl& url) {
  const std::string_view authority = text.substr(0, text.find('/'));
  text.remove_prefix(authority.size());
  if (text.empty() || (!authority.empty() && !authority.ends_with('@'))) {
    return Invalid("should name a socket by its full path, as in `unix:///run/redis/redis.sock`");
  }
  if (!authority.empty()) {
    auto user = ReadUser(authority.substr(0, authority.size() - 1), url);
    if (!user) return user;
  }
  if (text.contains('#')) return Invalid("has a `#`, which is written `%23`");
  const std::string_view encoded = text.substr(0, text.find('?'));
  const std::string_view query = text.substr(encoded.size());
  if (!query.empty()) {
    if (!query.starts_with("?db="))
      return Invalid("has an unknown option; only `?db=`, the database, is supported");
    if (auto database = ReadDatabase(query.substr(4), url); !database) return database;
  }
  const auto path = PercentDecode(encoded);
  if (!path) return path.error();
  if (path->size() > kMaxSocketPath || path->ends_with('/')) {
    return Invalid("should end in the path of a socket, which has at most 107 bytes");
  }
  url.hosts = {{.path = *path}};
  return {};
}

}  // namespace

bool IsHost(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxHost && std::ranges::all_of(text, IsVisible);
}

std::string RedisUrl::Shown() const {
  const bool is_socket = !hosts.empty() && !hosts.front().path.empty();
  std::string text = (is_socket ? "unix" : SchemeOf(mode, tls)) + "://";
  if (!password.empty()) {
    text += PercentEncode(user) + ":***@";
  } else if (!user.empty()) {
    text += "***@";
  }
  if (is_socket) {
    text += PercentEncode(hosts.front().path, /*is_path=*/true);
    return database == 0 ? text : text + "?db=" + std::to_string(database);
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) text += (i == 0 ? "" : ",") + hosts[i].Shown();
  if (mode == Mode::kSentinel) text += "/" + PercentEncode(master);
  return database == 0 ? text : text + "/" + std::to_string(database);
}

Result<RedisUrl> ParseRedisUrl(std::string_view text) {
  if (!std::ranges::all_of(text, IsVisible)) {
    return Invalid(
        "has a space, a control character or one that is not ASCII; write it as `%20` "
        "and such");
  }
  const auto end = text.find("://");
  const std::string_view scheme = text.substr(0, end);
  RedisUrl url;
  Result<void> read = Invalid(
      "should be `redis://host:port`, `redis+sentinel://host,host/master`, "
      "`redis+cluster://host,host`, one of these with `rediss` for TLS, or "
      "`unix:///path/of.sock`");
  if (end != std::string_view::npos) {
    text.remove_prefix(end + 3);
    if (scheme == "unix") read = ParseUnix(text, url);
    for (const Mode mode : {Mode::kSingle, Mode::kSentinel, Mode::kCluster}) {
      for (const bool tls : {false, true}) {
        if (scheme != SchemeOf(mode, tls)) continue;
        url.mode = mode;
        url.tls = tls;
        read = ParseTcp(text, url);
      }
    }
  }
  if (!read) return read.error();
  return url;
}

}  // namespace tidegate::redis

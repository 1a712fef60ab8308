// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <expected>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include "base/ascii.hpp"
#include "base/failure.hpp"

namespace tidegate::redis {
namespace {

using Mode = RedisUrl::Mode;

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr std::size_t kMaxHost = 253;  // RFC 1035, 2.3.4, as text.
constexpr std::size_t kMaxMaster = 255;
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un has 108 bytes, one of them NUL.

/// Schemes with hosts; `unix` has a path.
std::string SchemeOf(Mode mode, bool tls) {
  constexpr std::array<std::string_view, 3> kSuffixes = {"", "+sentinel", "+cluster"};
  return (tls ? "rediss" : "redis") + std::string(kSuffixes[static_cast<std::size_t>(mode)]);
}

std::unexpected<Error> Invalid(std::string why) {
  return Failure(ErrorCode::kBadConfig, std::move(why));
}

bool IsPrintable(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

/// Without a leading zero, which some take for octal.
std::optional<std::int64_t> ReadDecimal(std::string_view text, std::int64_t most) noexcept {
  const auto number = ReadWhole(text);
  if (!number || *number > most || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  return number;
}

constexpr std::string_view kBadEscape =
    "has a `%` that is not followed by two hexadecimal digits; a literal `%` is written `%25`";

Result<void> ReadUser(std::string_view text, RedisUrl& url) {
  if (text.contains('@')) {
    return Invalid(
        "has more than one `@`; write user and password once, before the first host, and an `@` in "
        "them as `%40`");
  }
  const auto colon = text.find(':');
  const bool has_password = colon != std::string_view::npos;
  const auto user = PercentDecode(text.substr(0, colon));
  const auto password = PercentDecode(has_password ? text.substr(colon + 1) : std::string_view{});
  if (!user || !password) return Invalid(std::string{kBadEscape});
  if (user->empty() && password->empty()) {
    return Invalid("has an `@` without a user or password before it; write both, or neither");
  }
  url.user = *user;
  url.password = *password;
  return {};
}

/// `[user[:password]@]host[:port][,host[:port]...]`
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
  if (!hosts) return std::unexpected(std::move(hosts).error());
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

/// `master[/database]`
Result<void> ReadMaster(std::string_view path, RedisUrl& url) {
  const auto slash = std::min(path.find('/'), path.size());
  auto master = PercentDecode(path.substr(0, slash));
  if (!master) return Invalid(std::string{kBadEscape});
  if (master->empty()) {
    return Invalid(
        "names no master; write the master's name after the sentinels, as in "
        "`redis+sentinel://h1,h2,h3/mymaster`");
  }
  if (master->size() > kMaxMaster || !IsPrintable(*master)) {
    return Invalid(
        "has a master's name that is not of 1 to 255 printable ASCII characters without spaces");
  }
  url.master = *std::move(master);
  const std::string_view database = path.substr(std::min(slash + 1, path.size()));
  return database.empty() ? Result<void>{} : ReadDatabase(database, url);
}

/// What stands after the hosts and a `/`.
Result<void> ReadPath(std::string_view path, RedisUrl& url) {
  if (url.mode == Mode::kSentinel) return ReadMaster(path, url);
  if (url.mode == Mode::kCluster && !path.empty() && path != "0") {
    return Invalid(
        "has a path other than `/0` after its hosts: a Redis Cluster has only database 0, so "
        "remove the path");
  }
  return path.empty() ? Result<void>{} : ReadDatabase(path, url);
}

Result<RedisUrl> ParseTcp(Mode mode, bool tls, std::string_view rest) {
  RedisUrl url;
  url.mode = mode;
  url.tls = tls;
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return Invalid(
        "has a `?` or `#`: this URL has no options; the database is `/2` after the host or master, "
        "and in a password or a master's name these characters are written `%3F` and `%23`");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  if (path.contains('@')) {
    return Invalid(
        "has an `@` after a `/`; in a user, a password or a master's name these characters are "
        "written `%40` and `%2F`");
  }
  auto read = ReadAuthority(rest.substr(0, slash), url);
  if (read) read = ReadPath(path, url);
  if (!read) return std::unexpected(std::move(read).error());
  return url;
}

Result<RedisUrl> ParseUnix(std::string_view rest) {
  RedisUrl url;
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  if (path.empty() || (!authority.empty() && !authority.ends_with('@'))) {
    return Invalid("should name a socket by its full path, as in `unix:///run/redis/redis.sock`");
  }
  if (!authority.empty()) {
    const auto user = ReadUser(authority.substr(0, authority.size() - 1), url);
    if (!user) return std::unexpected(user.error());
  }
  if (path.contains('#')) {
    return Invalid("has a `#`, which is written `%23`");
  }
  const auto query = path.find('?');
  if (query != std::string_view::npos) {
    const std::string_view option = path.substr(query + 1);
    if (!option.starts_with("db="))
      return Invalid("has an unknown option; only `?db=`, the database, is supported");
    const auto read = ReadDatabase(option.substr(3), url);
    if (!read) return std::unexpected(read.error());
    path = path.substr(0, query);
  }
  const auto decoded = PercentDecode(path);
  if (!decoded) return Invalid(std::string{kBadEscape});
  if (decoded->size() > kMaxSocketPath || decoded->ends_with('/')) {
    return Invalid("should end in the path of a socket, which has at most 107 bytes");
  }
  url.hosts = {{.path = *decoded}};
  return url;
}

}  // namespace

bool IsHost(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxHost && IsPrintable(text);
}

std::optional<std::int64_t> ReadInteger(std::string_view digits) noexcept {
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

std::optional<std::int64_t> ReadWhole(std::string_view digits) noexcept {
  return digits.starts_with('-') ? std::nullopt : ReadInteger(digits);
}

std::optional<std::uint16_t> ToPort(std::int64_t number) noexcept {
  if (number < 1 || number > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

std::optional<std::uint16_t> ReadPort(std::string_view digits) noexcept {
  const auto number = ReadWhole(digits);
  return number ? ToPort(*number) : std::nullopt;
}

std::string RedisUrl::Shown() const {
  const bool is_socket = !hosts.empty() && !hosts.front().path.empty();
  std::string text = (is_socket ? "unix" : SchemeOf(mode, tls)) + "://";
  if (!password.empty()) {
    text += PercentEncode(user, Slash::kEncoded) + ":***@";
  } else if (!user.empty()) {
    text += "***@";
  }
  if (is_socket) {
    text += PercentEncode(hosts.front().path, Slash::kPlain);
    return database == 0 ? text : text + "?db=" + std::to_string(database);
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) text += (i == 0 ? "" : ",") + hosts[i].Shown();
  if (mode == Mode::kSentinel) text += "/" + PercentEncode(master, Slash::kEncoded);
  return database == 0 ? text : text + "/" + std::to_string(database);
}

Result<RedisUrl> ParseRedisUrl(std::string_view text) {
  if (!IsPrintable(text)) {
    return Invalid(
        "has a space, a control character or one that is not ASCII; write it as `%20` "
        "and such");
  }
  if (const auto end = text.find("://"); end != std::string_view::npos) {
    const std::string_view name = text.substr(0, end);
    const std::string_view rest = text.substr(end + 3);
    if (name == "unix") return ParseUnix(rest);
    for (const Mode mode : {Mode::kSingle, Mode::kSentinel, Mode::kCluster}) {
      for (const bool tls : {false, true}) {
        if (name == SchemeOf(mode, tls)) return ParseTcp(mode, tls, rest);
      }
    }
  }
  return Invalid(
      "should be `redis://host:port`, `redis+sentinel://host,host/master`, "
      "`redis+cluster://host,host`, one of these with `rediss` for TLS, or "
      "`unix:///path/of.sock`");
}

namespace {

constexpr std::size_t kMaxLabel = 63;

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

bool IsLabel(std::string_view label) noexcept {
  return !label.empty() && label.size() <= kMaxLabel && label.front() != '-' &&
         std::ranges::all_of(label, [](char c) {
           return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z') || c == '-' || c == '_';
         });
}

/// Labels of letters, digits, `-` and `_` (which names of containers have), divided by dots. A name
/// whose last label is a number is an IPv4 address or a mistake: DNS has no such name.
bool IsHostName(std::string_view host) {
  if (host.empty() || host.size() > kMaxHost) return false;
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string_view last;
  for (const auto label : std::views::split(host, '.')) {
    last = std::string_view(label);
    if (!IsLabel(last)) return false;
  }
  if (!std::ranges::all_of(last, IsDigit)) return true;
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
    return Invalid(
        "has several `:` after its host; an IPv6 address is written in brackets, as in "
        "`redis://[::1]:6379`, and a `:` or `/` in a password is written `%3A` or `%2F`");
  }
  if (host.empty() && bracket == std::string_view::npos) {
    return Invalid("names no host, as in `redis://127.0.0.1:6379`");
  }
  if (bracket != std::string_view::npos ? !IsIpv6(host) : !IsHostName(host)) {
    return Invalid("has a host that is neither a name nor an IP address");
  }
  Endpoint endpoint{.host = std::string(host), .port = default_port};
  if (rest.empty()) return endpoint;
  const auto port = rest.front() == ':' ? ReadDecimal(rest.substr(1), 65'535) : std::nullopt;
  if (port.value_or(0) == 0) return Invalid("has a port that is not a number from 1 to 65535");
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
  std::ranges::transform(host, host.begin(), Lower);
  if (host.ends_with('.')) host.pop_back();
  return endpoint;
}

}  // namespace

Result<std::vector<Endpoint>> ParseHostList(std::string_view text, std::uint16_t default_port) {
  const auto commas = static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
  if (commas >= kMaxHosts) return Invalid("names more than 64 hosts; a few are enough");
  std::vector<Endpoint> hosts;
  std::set<Endpoint> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    if (begin == end && commas > 0) {
      return Invalid(
          "has a `,` without a host before or after it; write one `,` between two hosts");
    }
    auto host = ParseHost(text.substr(begin, end - begin), default_port);
    if (!host) return std::unexpected(std::move(host).error());
    if (!seen.insert(Normal(*host)).second) {
      return Invalid("names one host and port twice; name each once");
    }
    hosts.push_back(*std::move(host));
    begin = end + 1;
  }
  return hosts;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const Decoded next = TakeDecoded(text);
    if (next.encoded ? next.c == '\0' : next.c == '%') return std::nullopt;
    decoded += next.c;
  }
  return decoded;
}

std::string PercentEncode(std::string_view text, Slash slash) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const std::string_view special = slash == Slash::kPlain ? "%@:?#" : "%@:?#/";
  std::string encoded;
  for (const char c : text) {
    if (c > ' ' && c < 127 && special.find(c) == std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHex[byte >> 4];
    encoded += kHex[byte & 15];
  }
  return encoded;
}

}  // namespace tidegate::redis

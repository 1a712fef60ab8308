// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace tidegate::redis {
namespace {

constexpr std::size_t kMaxHost = 253;  // RFC 1035, 2.3.4, as text.
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un has 108 bytes, one of them NUL.

std::unexpected<Error> Refuse(std::string_view why) {
  return std::unexpected(Error{ErrorCode::kBadConfig, std::string{why}});
}

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }
bool IsLetter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Plain decimal digits, `min` to `max`.
std::optional<int> Number(std::string_view text, int min, int max) noexcept {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return std::nullopt;
  if (text.front() == '0' && text.size() > 1) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < min || number > max) return std::nullopt;
  return number;
}

/// Nothing where a `%` is not followed by two hexadecimal digits, or stands for NUL, which neither
/// a path nor anybody's password holds.
std::optional<std::string> Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2 || byte == 0) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

/// What Decode reads back, fit for a line of a log.
std::string Encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (c > ' ' && c < 127 && std::string_view{"%@:?#"}.find(c) == std::string_view::npos) {
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

constexpr std::string_view kBadEscape =
    "has a `%` that is not followed by two hexadecimal digits; a literal `%` is written `%25`";

Result<void> ReadUser(std::string_view text, RedisUrl& url) {
  if (text.find('@') != std::string_view::npos) {
    return Refuse("has more than one `@`; in a user or password it is written `%40`");
  }
  const auto colon = text.find(':');
  const bool has_password = colon != std::string_view::npos;
  const auto user = Decode(text.substr(0, colon));
  const auto password = Decode(has_password ? text.substr(colon + 1) : std::string_view{});
  if (!user || !password) return Refuse(kBadEscape);
  if (user->empty() && password->empty()) {
    return Refuse("has an `@` without a user or password before it; write both, or neither");
  }
  url.user = *user;
  url.password = *password;
  return {};
}

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

Result<void> ReadHost(std::string_view text, RedisUrl& url) {
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  std::string_view host = text.substr(0, text.find(':'));
  std::string_view rest = text.substr(host.size());
  if (bracket != std::string_view::npos) {
    host = text.substr(1, bracket - 1);
    rest = text.substr(bracket + 1);
  } else if (rest.find(':', 1) != std::string_view::npos) {
    return Refuse(
        "has several `:` after its host; an IPv6 address stands in brackets, as in "
        "`redis://[::1]:6379`, and a `:` or `/` in a password is written `%3A` or `%2F`");
  }
  if (host.empty() && bracket == std::string_view::npos) {
    return Refuse("names no host, as in `redis://127.0.0.1:6379`");
  }
  if (bracket != std::string_view::npos ? !IsIpv6(host) : !IsHost(host)) {
    return Refuse("has a host that is neither a name nor an IP address");
  }
  url.hosts = {{.host = std::string(host), .port = 6379}};
  if (rest.empty()) return {};
  const auto port = rest.front() == ':' ? Number(rest.substr(1), 1, 65'535) : std::nullopt;
  if (!port) return Refuse("has a port that is not a number from 1 to 65535");
  url.hosts.front().port = static_cast<std::uint16_t>(*port);
  return {};
}

Result<void> ReadDatabase(std::string_view text, RedisUrl& url) {
  const auto database = Number(text, 0, 2'147'483'647);
  if (!database) {
    return Refuse(
        "has a database that is not a number, as in `/2` after the host or `?db=2` after a "
        "socket; a `/` in a password is written `%2F`");
  }
  url.database = *database;
  return {};
}

Result<RedisUrl> ParseTcp(std::string_view rest) {
  RedisUrl url;
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return Refuse(
        "has a `?` or `#`: there are no options here; the database is `/2` after the host, and in "
        "a password these are written `%3F` and `%23`");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    if (const auto user = ReadUser(authority.substr(0, at), url); !user) {
      return std::unexpected(user.error());
    }
    authority.remove_prefix(at + 1);
  }
  if (const auto host = ReadHost(authority, url); !host) return std::unexpected(host.error());
  const std::string_view database = rest.substr(std::min(slash + 1, rest.size()));
  if (database.empty()) return url;
  if (const auto read = ReadDatabase(database, url); !read) return std::unexpected(read.error());
  return url;
}

Result<RedisUrl> ParseUnix(std::string_view rest) {
  RedisUrl url;
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  if (path.empty() || (!authority.empty() && !authority.ends_with('@'))) {
    return Refuse("should name a socket by its full path, as in `unix:///run/redis/redis.sock`");
  }
  if (!authority.empty()) {
    const auto user = ReadUser(authority.substr(0, authority.size() - 1), url);
    if (!user) return std::unexpected(user.error());
  }
  if (path.find('#') != std::string_view::npos) {
    return Refuse("has a `#`, which is written `%23`");
  }
  const auto query = path.find('?');
  if (query != std::string_view::npos) {
    const std::string_view option = path.substr(query + 1);
    if (!option.starts_with("db=")) return Refuse("knows no option but `?db=`, the database");
    const auto read = ReadDatabase(option.substr(3), url);
    if (!read) return std::unexpected(read.error());
    path = path.substr(0, query);
  }
  const auto decoded = Decode(path);
  if (!decoded) return Refuse(kBadEscape);
  if (decoded->size() > kMaxSocketPath || decoded->ends_with('/')) {
    return Refuse("should end in the path of a socket, which has at most 107 bytes");
  }
  url.hosts = {{.path = *decoded}};
  return url;
}

struct Absent {
  std::string_view scheme;
  std::string_view what;
};
constexpr std::array<Absent, 3> kAbsent = {{
    {"rediss", "this version of tidegate has no TLS to Redis: write `redis://` or `unix://`"},
    {"redis+sentinel",
     "this version of tidegate has no Sentinel: write `redis://` and the address of one Redis"},
    {"redis+cluster",
     "this version of tidegate has no Cluster: write `redis://` and the address of one Redis"},
}};

}  // namespace

std::string RedisUrl::Shown() const {
  const Endpoint& host = hosts.front();
  std::string text = host.path.empty() ? "redis://" : "unix://";
  if (!password.empty()) {
    text += Encode(user) + ":***@";
  } else if (!user.empty()) {
    text += "***@";
  }
  if (!host.path.empty()) {
    text += Encode(host.path);
    return database == 0 ? text : text + "?db=" + std::to_string(database);
  }
  text += host.Shown();
  return database == 0 ? text : text + "/" + std::to_string(database);
}

Result<RedisUrl> ParseRedisUrl(std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain) {
    return Refuse(
        "has a space, a control character or one that is not ASCII; write it as `%20` "
        "and such");
  }
  const auto end = text.find("://");
  const std::string_view scheme = text.substr(0, std::min(end, text.size()));
  const std::string_view rest = text.substr(std::min(scheme.size() + 3, text.size()));
  for (const Absent& absent : kAbsent) {
    if (end != std::string_view::npos && scheme == absent.scheme) return Refuse(absent.what);
  }
  if (end != std::string_view::npos && scheme == "redis") return ParseTcp(rest);
  if (end != std::string_view::npos && scheme == "unix") return ParseUnix(rest);
  return Refuse("should be `redis://host:port` or `unix:///path/of.sock`");
}

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_url.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/refuse.hpp"
#include "store/redis/decimal.hpp"
#include "store/redis/host_list.hpp"
#include "store/redis/percent.hpp"

namespace tidegate::redis {
namespace {

using Mode = RedisUrl::Mode;

constexpr std::uint16_t kRedisPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr std::size_t kMaxMaster = 255;
constexpr std::size_t kMaxSocketPath = 107;  // sockaddr_un has 108 bytes, one of them NUL.

struct Scheme {
  std::string_view name;
  Mode mode;
  bool tls;
};
/// Those with hosts; `unix` has a path.
constexpr std::array<Scheme, 6> kSchemes = {{
    {"redis", Mode::kSingle, false},
    {"rediss", Mode::kSingle, true},
    {"redis+sentinel", Mode::kSentinel, false},
    {"rediss+sentinel", Mode::kSentinel, true},
    {"redis+cluster", Mode::kCluster, false},
    {"rediss+cluster", Mode::kCluster, true},
}};

bool IsPrintable(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

constexpr std::string_view kBadEscape =
    "has a `%` that is not followed by two hexadecimal digits; a literal `%` is written `%25`";

Result<void> ReadUser(std::string_view text, RedisUrl& url) {
  if (text.find('@') != std::string_view::npos) {
    return Refuse(
        ErrorCode::kBadConfig,
        "has more than one `@`; user and password stand once, before the first host, and an `@` in "
        "them is written `%40`");
  }
  const auto colon = text.find(':');
  const bool has_password = colon != std::string_view::npos;
  const auto user = PercentDecode(text.substr(0, colon));
  const auto password = PercentDecode(has_password ? text.substr(colon + 1) : std::string_view{});
  if (!user || !password) return Refuse(ErrorCode::kBadConfig, std::string(kBadEscape));
  if (user->empty() && password->empty()) {
    return Refuse(ErrorCode::kBadConfig,
                  "has an `@` without a user or password before it; write both, or neither");
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
  if (url.mode == Mode::kSingle && text.find(',') != std::string_view::npos) {
    return Refuse(ErrorCode::kBadConfig,
                  url.tls ? "names several hosts, but `rediss://` takes one; several are for "
                            "`rediss+sentinel://` and `rediss+cluster://`"
                          : "names several hosts, but `redis://` takes one; several are for "
                            "`redis+sentinel://` and `redis+cluster://`");
  }
  auto hosts = ParseHostList(text, url.mode == Mode::kSentinel ? kSentinelPort : kRedisPort);
  if (!hosts) return std::unexpected(std::move(hosts).error());
  url.hosts = *std::move(hosts);
  return {};
}

Result<void> ReadDatabase(std::string_view text, RedisUrl& url) {
  const auto database = ParseDecimal(text, 0, 2'147'483'647);
  if (!database) {
    return Refuse(
        ErrorCode::kBadConfig,
        "has a database that is not a number, as in `/2` after the host or master, or `?db=2` "
        "after a socket; a `/` in a password is written `%2F`");
  }
  url.database = *database;
  return {};
}

/// `master[/database]`
Result<void> ReadMaster(std::string_view path, RedisUrl& url) {
  const auto slash = std::min(path.find('/'), path.size());
  auto master = PercentDecode(path.substr(0, slash));
  if (!master) return Refuse(ErrorCode::kBadConfig, std::string(kBadEscape));
  if (master->empty()) {
    return Refuse(
        ErrorCode::kBadConfig,
        "names no master; the name by which the sentinels know it stands after them, as in "
        "`redis+sentinel://h1,h2,h3/mymaster`");
  }
  if (master->size() > kMaxMaster || !IsPrintable(*master)) {
    return Refuse(
        ErrorCode::kBadConfig,
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
    return Refuse(
        ErrorCode::kBadConfig,
        "has more after its hosts than `/0`: a Redis Cluster has only database 0, so leave it out");
  }
  return path.empty() ? Result<void>{} : ReadDatabase(path, url);
}

Result<RedisUrl> ParseTcp(const Scheme& scheme, std::string_view rest) {
  RedisUrl url;
  url.mode = scheme.mode;
  url.tls = scheme.tls;
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return Refuse(
        ErrorCode::kBadConfig,
        "has a `?` or `#`: there are no options here; the database is `/2` after the host or "
        "master, and in a password or a master's name these are written `%3F` and `%23`");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  if (path.find('@') != std::string_view::npos) {
    return Refuse(
        ErrorCode::kBadConfig,
        "has an `@` after a `/`; in a user, a password or a master's name they are written `%40` "
        "and `%2F`");
  }
  if (auto read = ReadAuthority(rest.substr(0, slash), url); !read) {
    return std::unexpected(std::move(read).error());
  }
  if (auto read = ReadPath(path, url); !read) return std::unexpected(std::move(read).error());
  return url;
}

Result<RedisUrl> ParseUnix(std::string_view rest) {
  RedisUrl url;
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  if (path.empty() || (!authority.empty() && !authority.ends_with('@'))) {
    return Refuse(ErrorCode::kBadConfig,
                  "should name a socket by its full path, as in `unix:///run/redis/redis.sock`");
  }
  if (!authority.empty()) {
    const auto user = ReadUser(authority.substr(0, authority.size() - 1), url);
    if (!user) return std::unexpected(user.error());
  }
  if (path.find('#') != std::string_view::npos) {
    return Refuse(ErrorCode::kBadConfig, "has a `#`, which is written `%23`");
  }
  const auto query = path.find('?');
  if (query != std::string_view::npos) {
    const std::string_view option = path.substr(query + 1);
    if (!option.starts_with("db="))
      return Refuse(ErrorCode::kBadConfig, "knows no option but `?db=`, the database");
    const auto read = ReadDatabase(option.substr(3), url);
    if (!read) return std::unexpected(read.error());
    path = path.substr(0, query);
  }
  const auto decoded = PercentDecode(path);
  if (!decoded) return Refuse(ErrorCode::kBadConfig, std::string(kBadEscape));
  if (decoded->size() > kMaxSocketPath || decoded->ends_with('/')) {
    return Refuse(ErrorCode::kBadConfig,
                  "should end in the path of a socket, which has at most 107 bytes");
  }
  url.hosts = {{.path = *decoded}};
  return url;
}

std::string_view SchemeOf(const RedisUrl& url) noexcept {
  const auto* const found = std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& s) {
    return s.mode == url.mode && s.tls == url.tls;
  });
  return found->name;
}

}  // namespace

std::string RedisUrl::Shown() const {
  const bool is_socket = !hosts.empty() && !hosts.front().path.empty();
  std::string text = std::string{is_socket ? "unix" : SchemeOf(*this)} + "://";
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
    return Refuse(ErrorCode::kBadConfig,
                  "has a space, a control character or one that is not ASCII; write it as `%20` "
                  "and such");
  }
  if (const auto end = text.find("://"); end != std::string_view::npos) {
    const std::string_view name = text.substr(0, end);
    const std::string_view rest = text.substr(end + 3);
    if (name == "unix") return ParseUnix(rest);
    for (const Scheme& scheme : kSchemes) {
      if (name == scheme.name) return ParseTcp(scheme, rest);
    }
  }
  return Refuse(ErrorCode::kBadConfig,
                "should be `redis://host:port`, `redis+sentinel://host,host/master`, "
                "`redis+cluster://host,host`, one of these with `rediss` for TLS, or "
                "`unix:///path/of.sock`");
}

}  // namespace tidegate::redis

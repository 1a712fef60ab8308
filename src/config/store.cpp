// SPDX-License-Identifier: Apache-2.0
// store: where the counters live, and what happens while they cannot be reached.
#include <algorithm>

#include "base/units.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

using redis::RedisUrl;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Store = Config::Store;
using Sentinel = Config::StoreSentinel;

constexpr std::size_t kMaxPrefix = 64;

/// No message shows the text: it may hold a password.
void ReadStoreUrl(const ConfigValue& value, Store& store) {
  const auto text = value.Secret(0, kMaxSecretFile, Secrecy::kSecretInFile);
  if (!text || *text == "memory://") return;
  if (!text->starts_with("redis") && !text->starts_with("unix:")) {
    return value.Error(
        "should be `redis://127.0.0.1:6379`, `redis+sentinel://h1,h2,h3/mymaster`, "
        "`redis+cluster://h1,h2`, one of these with `rediss` for TLS, "
        "`unix:///run/redis/redis.sock` or `memory://`; or `file:PATH` of one");
  }
  auto url = redis::ParseRedisUrl(*text);
  if (!url) return value.Error(url.error().message);
  if (!url->password.empty()) value.NoteInlineSecret();
  store.redis = *std::move(url);
}

std::optional<std::string> ReadPrefix(const ConfigValue& value) {
  auto text = value.Text();
  if (!text) return std::nullopt;
  if (!IsPrintable(*text) || text->find_first_of("{}") != text->npos || text->size() > kMaxPrefix) {
    return value.Invalid(
        "should have at most 64 printable ASCII characters, without spaces, `{` and `}`");
  }
  return text;
}

/// No message shows the text: it may be a password that was put into the wrong line.
std::optional<std::string> ReadSentinelUser(const ConfigValue& value) {
  auto text = value.Text();
  if (!text) return std::nullopt;
  // Redis itself rejects such names in `ACL SETUSER`, and no log line should have them.
  const bool plain = std::ranges::none_of(
      *text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; });
  if (text->empty() || !plain) {
    return value.Invalid(
        "should be an ACL user of the sentinels, without spaces and control characters; for their "
        "default user leave it out");
  }
  return text;
}

std::optional<std::string> ReadSentinelPassword(const ConfigValue& value) {
  auto text = value.Secret(0);
  if (!text || !text->empty()) return text;
  // The text may come from a variable that is set to an empty value.
  return value.Invalid(
      "is empty; write the sentinels' password, or remove the key if they have none");
}

constexpr auto kSentinelFields = Fields({
    Value<&Sentinel::user, ReadSentinelUser>("user", kNotEmptyType, "An ACL user of the sentinels.")
        .Otherwise("their default user"),
    Value<&Sentinel::password, ReadSentinelPassword>(
        "password", ValueType{R"({"type": "string", "minLength": 1})", "a text, or `file:PATH`"},
        "The password of that user."),
});
constexpr Section<Sentinel> kSentinelSection("store_sentinel", kSentinelFields);

constexpr auto kStoreFields = Fields({
    Custom<ReadStoreUrl>(
        "url",
        ValueType{
            R"({"type": "string", "examples": ["redis://127.0.0.1:6379", "rediss://redis.internal",
        "redis+sentinel://h1,h2,h3/mymaster", "redis+cluster://h1,h2", "unix:///run/redis/redis.sock"]})",
            "a URL, or `file:PATH` of one"},
        "Where the counters are stored: `memory://`; "
        "`redis://[user[:password]@]host[:port][/database]`; "
        "`redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/database]`; "
        "`redis+cluster://[user[:password]@]host[:port][,host[:port]...]`; these three with "
        "`rediss` for TLS; or `unix://[user[:password]@]/path[?db=database]`.")
        .Default("memory://"),
    Sub<&Store::tls>("tls", kStoreTlsSection,
                     "TLS settings, for a `url` that begins with `rediss`."),
    Sub<&Store::sentinel>("sentinel", kSentinelSection,
                          "For a `url` that names sentinels: the user for the sentinels. The user "
                          "in `url` is for Redis itself."),
    Value<&Store::prefix, ReadPrefix>(
        "prefix",
        ValueType{
            R"({"anyOf": [{"type": "string", "pattern": "^[!-z|~]{0,64}$"}, {"$ref": "#/$defs/environment"}]})",
            "up to 64 printable characters without spaces, `{` and `}`"},
        "Redis only: the beginning of every key, so that two environments can share one Redis."),
    Duration<&Store::deadline>(
        "deadline", milliseconds{1}, seconds{10},
        "Redis only: how long a decision may take before `on_failure` applies."),
    Duration<&Store::connect_timeout>("connect_timeout", milliseconds{10}, seconds{10},
                                      "Redis only: how long connecting may take."),
    Integer<&Store::nodes>("nodes", 1, 10'000,
                           "Redis only: the number of nodes by which `local` divides a limit until "
                           "Redis reports the number of nodes."),
    Integer<&Store::max_keys>("max_keys", 1'000, 1'000'000'000,
                              "The most keys that are counted one by one; further keys share one "
                              "key per rule. With Redis: in the memory store that `local` uses."),
    Size<&Store::max_list_bytes>("max_list_bytes", 64 * kKibibyte, 1024 * kGibibyte,
                                 "The most memory for sliding logs and leases; with Redis: in the "
                                 "memory store that `local` uses."),
    OneOf<&Store::on_failure>(
        "on_failure", kOnFailureWords,
        "What happens to requests while the store does not answer, for rules without their own "
        "`on_failure` and for inline quotas: they pass uncounted, are refused with 503, or are "
        "counted by each node with its share of the limit. The memory store always answers.")
        .Otherwise("with Redis: required here or in every rule"),
});

/// Returns why a key that is for Redis only has no effect; empty if it has one.
std::string WhyUseless(std::string_view key, const Store& store) {
  const std::string example = key == "tls"        ? "`rediss://redis.internal:6379`"
                              : key == "sentinel" ? "`redis+sentinel://h1,h2,h3/mymaster`"
                                                  : "`redis://127.0.0.1:6379`";
  const std::string remedy = ", as in " + example + ", or remove the key";
  if (!store.redis) return "has no effect on the memory store; write a `url`" + remedy;
  if (key == "tls" && !store.redis->tls) {
    return "has no effect, since `url` does not use TLS; begin it with `rediss`" + remedy;
  }
  if (key == "sentinel" && store.redis->mode != RedisUrl::Mode::kSentinel) {
    return "has no effect, since `url` names no sentinels; name them" + remedy;
  }
  return {};
}

/// Returns true for a socket, a loopback address or `localhost`: the traffic stays on the machine.
bool IsLocal(const redis::Endpoint& endpoint) {
  if (!endpoint.path.empty()) return true;
  if (const auto address = Address::Parse(endpoint.host)) return address->IsLoopback();
  const std::string name = Lowered(endpoint.host);
  return name == "localhost" || name == "localhost.";
}

void WarnAboutPasswords(const ConfigValue& section, const Store& store) {
  constexpr std::string_view kMessage =
      "the password is sent unencrypted, and anyone who can read the traffic can use it; if Redis "
      "has TLS, write `rediss` for `redis` in `store.url`";
  const RedisUrl& url = *store.redis;
  if (url.tls || std::ranges::all_of(url.hosts, IsLocal)) return;
  if (!url.password.empty()) section["url"].Warning(kMessage);
  if (url.mode != RedisUrl::Mode::kSentinel || store.sentinel.password.empty()) return;
  section["sentinel"]["password"].Warning(kMessage);
}

void CheckStore(const ConfigValue& section, Store& store) {
  if (section["url"].invalid()) return;  // It is unknown which keys have an effect.
  for (const std::string_view key :
       {"tls", "sentinel", "prefix", "deadline", "connect_timeout", "nodes"}) {
    const std::string why = WhyUseless(key, store);
    if (section[key].written() && !why.empty()) section[key].Error(why);
  }
  if (store.redis) WarnAboutPasswords(section, store);
}

}  // namespace

constinit const Section<Store> kStoreSection("store", kStoreFields, CheckStore);

}  // namespace tidegate

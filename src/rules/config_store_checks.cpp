// SPDX-License-Identifier: Apache-2.0
// What of the store's keys does not fit its url.
#include <algorithm>

#include "rules/ascii.hpp"
#include "rules/config_store.hpp"

namespace tidegate {
namespace {

using redis::RedisUrl;

/// A url under which the key has a meaning.
std::string_view UrlFor(std::string_view key) noexcept {
  if (key == "tls") return "rediss://redis.internal:6379";
  if (key == "sentinel") return "redis+sentinel://h1,h2,h3/mymaster";
  return "redis://127.0.0.1:6379";
}

/// Why the key has no meaning; empty: it has one.
std::string WhyUseless(std::string_view key, const Config::Store& store) {
  const std::string example = Ticked(UrlFor(key));
  if (!store.redis) {
    return "has no meaning for the memory store; give `url`, as in " + example + ", or remove this";
  }
  if (key == "tls" && !store.redis->tls) {
    return "has no effect, since `url` does not ask for TLS; begin it with `rediss`, as in " +
           example + ", or remove this";
  }
  if (key == "sentinel" && store.redis->mode != RedisUrl::Mode::kSentinel) {
    return "has no effect, since `url` names no sentinels; name them, as in " + example +
           ", or remove this";
  }
  return {};
}

/// A socket, an address of loopback or its name: what is sent there stays on the machine.
bool IsHere(const redis::Endpoint& endpoint) {
  if (!endpoint.path.empty()) return true;
  if (const auto address = Address::Parse(endpoint.host)) return address->IsLoopback();
  std::string name = endpoint.host;
  std::transform(name.begin(), name.end(), name.begin(), Lower);
  return name == "localhost" || name == "localhost.";
}

void WarnAboutPasswords(const ConfigValue& section, const StoreDraft& draft) {
  const RedisUrl& url = *draft.store.redis;
  if (url.tls || std::all_of(url.hosts.begin(), url.hosts.end(), IsHere)) return;
  const auto warn = [&](Position at, std::string_view key) {
    section.context().Add(Problem::Severity::kWarning, at,
                          section.where().Text() + "." + std::string{key},
                          "the password travels in the clear, and whoever sees it may use it; if "
                          "Redis has TLS, write `rediss` for `redis` in `store.url`");
  };
  if (!url.password.empty()) warn(draft.url, "url");
  if (url.mode != RedisUrl::Mode::kSentinel) return;
  if (!draft.store.sentinel.password.empty()) warn(draft.sentinel_password, "sentinel.password");
}

}  // namespace

void JudgeStore(const ConfigValue& section, const StoreDraft& draft) {
  if (draft.kind == StoreDraft::Kind::kBad) return;
  for (const StoreDraft::RedisKey& key : draft.redis_keys) {
    const std::string why = WhyUseless(key.name, draft.store);
    const Where where{.parent = &section.where(), .key = key.name};
    if (!why.empty()) section.context().Error(key.at, where, why);
  }
  if (draft.store.redis) WarnAboutPasswords(section, draft);
}

}  // namespace tidegate

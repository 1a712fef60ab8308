// SPDX-License-Identifier: Apache-2.0
// store: where the counters live, and what is done while they cannot be reached.
#include <algorithm>
#include <chrono>

#include "rules/config_store.hpp"
#include "rules/size_text.hpp"

namespace tidegate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxPrefix = 64;

/// Whatever is wrong, the text is not shown: it may hold a password.
void ReadUrl(const ConfigValue& value, StoreDraft& draft) {
  draft.kind = StoreDraft::Kind::kBad;
  draft.url = value.at();
  const auto text = value.Secret(0, kMaxSecretFile, Secrecy::kSecretInFile);
  if (!text) return;
  if (*text == "memory://") {
    draft.kind = StoreDraft::Kind::kMemory;
    return;
  }
  if (!text->starts_with("redis") && !text->starts_with("unix:")) {
    return value.Error(
        "should be `redis://127.0.0.1:6379`, `redis+sentinel://h1,h2,h3/mymaster`, "
        "`redis+cluster://h1,h2`, one of these with `rediss` for TLS, "
        "`unix:///run/redis/redis.sock` or `memory://`; or `file:PATH` of one");
  }
  auto url = redis::ParseRedisUrl(*text);
  if (!url) return value.Error(url.error().message);
  if (!url->password.empty()) value.NoteInlineSecret();
  draft.store.redis = *std::move(url);
  draft.kind = StoreDraft::Kind::kRedis;
}

void ReadPrefix(const ConfigValue& value, StoreDraft& draft) {
  const auto text = value.Text();
  if (!text) return;
  const bool good = std::all_of(text->begin(), text->end(),
                                [](char c) { return c > ' ' && c < 127 && c != '{' && c != '}'; });
  if (!good || text->size() > kMaxPrefix) {
    return value.Error(
        "should have at most 64 printable ASCII characters, without spaces, `{` and `}`");
  }
  draft.store.prefix = *text;
}

/// A key that the memory store has no use for.
template <void (*Read)(const ConfigValue&, StoreDraft&)>
void RedisOnly(const ConfigValue& value, StoreDraft& draft) {
  draft.redis_keys.push_back({value.where().key, value.at()});
  Read(value, draft);
}

void ReadDeadline(const ConfigValue& value, StoreDraft& draft) {
  Put(draft.store.deadline, value.Duration(milliseconds{1}, seconds{10}));
}

void ReadConnectTimeout(const ConfigValue& value, StoreDraft& draft) {
  Put(draft.store.connect_timeout, value.Duration(milliseconds{10}, seconds{10}));
}

void ReadNodes(const ConfigValue& value, StoreDraft& draft) {
  if (const auto nodes = value.Integer(1, 10'000)) draft.store.nodes = static_cast<int>(*nodes);
}

void ReadMaxKeys(const ConfigValue& value, StoreDraft& draft) {
  if (const auto keys = value.Integer(1'000, 1'000'000'000)) {
    draft.store.max_keys = static_cast<std::size_t>(*keys);
  }
}

constexpr std::array<ConfigKey<StoreDraft>, 10> kStoreKeys = {{
    {"url", ReadUrl},
    {"tls", RedisOnly<ReadStoreTls>},
    {"sentinel", RedisOnly<ReadStoreSentinel>},
    {"prefix", RedisOnly<ReadPrefix>},
    {"deadline", RedisOnly<ReadDeadline>},
    {"connect_timeout", RedisOnly<ReadConnectTimeout>},
    {"nodes", RedisOnly<ReadNodes>},
    {"max_keys", ReadMaxKeys},
    {"max_list_bytes",
     [](const ConfigValue& v, StoreDraft& d) {
       Put(d.store.max_list_bytes, v.Size(64 * kKibibyte, 1024 * kGibibyte));
     }},
    {"on_failure",
     [](const ConfigValue& v, StoreDraft& d) {
       d.places.on_failure = v.at();
       Put(d.store.on_failure, v.OneOf(kOnFailureWords));
     }},
}};

}  // namespace

void ReadStore(const ConfigValue& value, ConfigDraft& draft) {
  StoreDraft store{.store = draft.config.store, .places = draft.places};
  draft.places.store = value.at();
  ReadSection(value, kStoreKeys, store);
  JudgeStore(value, store);
}

void AppendStoreKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("store", kStoreKeys));
  AppendStoreTlsKeys(sections);
  AppendStoreSentinelKeys(sections);
}

}  // namespace tidegate

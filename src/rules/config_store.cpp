// SPDX-License-Identifier: Apache-2.0
// store: where the counters live, and what is done while they cannot be reached.
#include <algorithm>
#include <chrono>

#include "rules/config_sections.hpp"

namespace tidegate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kGiB = 1 << 30;
constexpr std::size_t kMaxPrefix = 64;

/// The section as it is read: which store it is may stand below the keys that only Redis has.
struct StoreDraft {
  enum class Kind : std::uint8_t { kMemory, kRedis, kBad };
  Config::Store& store;
  ConfigPlaces& places;
  Kind kind = Kind::kMemory;
  struct RedisKey {
    std::string_view name;
    Position at;
  };
  std::vector<RedisKey> redis_keys = {};  ///< Those that were written.
};

/// Whatever is wrong, the text is not shown: it may hold a password.
void ReadUrl(const ConfigValue& value, StoreDraft& draft) {
  draft.kind = StoreDraft::Kind::kBad;
  const auto text = value.Secret(0);
  if (!text) return;
  if (*text == "memory://") {
    draft.kind = StoreDraft::Kind::kMemory;
    return;
  }
  if (!text->starts_with("redis") && !text->starts_with("unix:")) {
    return value.Error(
        "should be `redis://127.0.0.1:6379`, `unix:///run/redis/redis.sock` or `memory://`; or "
        "`file:PATH` of one");
  }
  auto url = redis::ParseRedisUrl(*text);
  if (!url) return value.Error(url.error().message);
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

constexpr std::array<ConfigKey<StoreDraft>, 8> kStoreKeys = {{
    {"url", ReadUrl},
    {"prefix", RedisOnly<ReadPrefix>},
    {"deadline", RedisOnly<ReadDeadline>},
    {"connect_timeout", RedisOnly<ReadConnectTimeout>},
    {"nodes", RedisOnly<ReadNodes>},
    {"max_keys", ReadMaxKeys},
    {"max_list_bytes",
     [](const ConfigValue& v, StoreDraft& d) {
       Put(d.store.max_list_bytes, v.Size(64 * kKiB, 1024 * kGiB));
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
  if (store.kind != StoreDraft::Kind::kMemory) return;
  for (const StoreDraft::RedisKey& key : store.redis_keys) {
    const Where where{.parent = &value.where(), .key = key.name};
    value.context().Error(key.at, where,
                          "has no meaning for the memory store; give `url`, as in "
                          "`redis://127.0.0.1:6379`, or remove this");
  }
}

void AppendStoreKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("store", kStoreKeys));
}

}  // namespace tidegate

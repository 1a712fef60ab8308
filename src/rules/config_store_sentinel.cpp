// SPDX-License-Identifier: Apache-2.0
// sentinel of the store: as whom its sentinels are asked. The url's user is for Redis itself.
#include <algorithm>

#include "rules/config_store.hpp"

namespace tidegate {
namespace {

/// Not shown, whatever is wrong: people put passwords into the wrong line.
void ReadUser(const ConfigValue& value, StoreDraft& draft) {
  auto text = value.Text();
  if (!text) return;
  // What Redis itself refuses in `ACL SETUSER`, and what no line of a log should hold.
  const bool plain = std::none_of(text->begin(), text->end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 127;
  });
  if (text->empty() || !plain) {
    return value.Error(
        "should be an ACL user of the sentinels, without spaces and control characters; for their "
        "default user leave it out");
  }
  draft.store.sentinel.user = *std::move(text);
}

void ReadPassword(const ConfigValue& value, StoreDraft& draft) {
  draft.sentinel_password = value.at();
  auto text = value.Secret(0);
  if (!text) return;
  // As of a variable that is set to nothing.
  if (text->empty()) {
    return value.Error("is empty; give the sentinels' password, or remove this if they have none");
  }
  draft.store.sentinel.password = *std::move(text);
}

constexpr std::array<ConfigKey<StoreDraft>, 2> kSentinelKeys = {{
    {"user", ReadUser},
    {"password", ReadPassword},
}};

}  // namespace

void ReadStoreSentinel(const ConfigValue& value, StoreDraft& draft) {
  ReadSection(value, kSentinelKeys, draft);
}

void AppendStoreSentinelKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("store_sentinel", kSentinelKeys));
}

}  // namespace tidegate

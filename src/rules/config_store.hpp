// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rules/config_sections.hpp"

// What the files that read `store` share; only they include this.

namespace tidegate {

/// The section as it is read: which store it is may stand below the keys that only Redis has.
struct StoreDraft {
  enum class Kind : std::uint8_t { kMemory, kRedis, kBad };
  Config::Store& store;
  ConfigPlaces& places;
  Kind kind = Kind::kMemory;
  Position url = {};
  Position sentinel_password = {};
  struct RedisKey {
    std::string_view name;
    Position at;
  };
  std::vector<RedisKey> redis_keys = {};  ///< Those that were written.
};

void ReadStoreTls(const ConfigValue& value, StoreDraft& draft);
void ReadStoreSentinel(const ConfigValue& value, StoreDraft& draft);

/// What no key of the section can see by itself: those that its store has no use for, and passwords
/// that travel in the clear.
void JudgeStore(const ConfigValue& section, const StoreDraft& draft);

void AppendStoreTlsKeys(std::vector<SectionKeys>& sections);
void AppendStoreSentinelKeys(std::vector<SectionKeys>& sections);

}  // namespace tidegate

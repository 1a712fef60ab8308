// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/redis/key_names.hpp"

namespace tidegate::redis {

/// Returns the slot of a key as Redis computes it: from the text between the first `{` and the next
/// `}` if there is any, otherwise from the whole key.
inline Slot SlotOfKey(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return SlotOfTag(key);
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return SlotOfTag(key);
  return SlotOfTag(key.substr(open + 1, close - open - 1));
}

}  // namespace tidegate::redis

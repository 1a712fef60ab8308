// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Functions that write parts of human-readable messages.

namespace tidegate {

/// Returns `text` in backticks, as messages quote words of the configuration.
[[nodiscard]] inline std::string Backticked(std::string_view text) {
  return "`" + std::string{text} + "`";
}

/// Returns text from a client in a form that is safe in log lines: cut after 64 bytes, and with all
/// but printable ASCII as `\xNN`, so that it can neither break a line nor be invisible.
[[nodiscard]] std::string Printable(std::string_view text);

/// Returns the candidate that a person who wrote `text` most likely meant; nothing if none is near.
/// One letter in three may be wrong, missing, added or swapped. Case and `-` for `_` do not count.
[[nodiscard]] std::optional<std::string_view> Nearest(std::string_view text,
                                                      std::span<const std::string_view> candidates);

/// Returns "; did you mean `limit`?" with the nearest candidate; empty if none is close.
[[nodiscard]] std::string DidYouMean(std::string_view text,
                                     std::span<const std::string_view> candidates);

/// Returns `text(item)` of all items, with `separator` between them.
template <class Items, class Text>
[[nodiscard]] std::string Joined(const Items& items, std::string_view separator, Text text) {
  std::string joined;
  for (const auto& item : items) {
    if (!joined.empty()) joined += separator;
    joined += std::invoke(text, item);
  }
  return joined;
}

/// Returns "`a`, `b` or `c`".
[[nodiscard]] std::string OneOf(std::span<const std::string_view> candidates);

}  // namespace tidegate

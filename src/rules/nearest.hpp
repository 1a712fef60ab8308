// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tidegate {

/// The candidate that a person who wrote `text` most likely meant, or nothing where none is close:
/// one letter in three may be wrong, missing, added or swapped with its neighbour. Case and the
/// difference between `-` and `_` do not count.
[[nodiscard]] std::optional<std::string_view> Nearest(std::string_view text,
                                                      std::span<const std::string_view> candidates);

/// "; did you mean `limit`?", or nothing.
[[nodiscard]] std::string DidYouMean(std::string_view text,
                                     std::span<const std::string_view> candidates);

/// "`a`, `b` or `c`".
[[nodiscard]] std::string OneOf(std::span<const std::string_view> candidates);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "rules/problem.hpp"

namespace tidegate {

inline constexpr std::size_t kMaxYamlBytes = 16u << 20;
/// yaml-cpp keeps every token of a line in memory, at some 230 bytes each, until it knows that the
/// line's first one is no key: 16 MiB of `[[[[` would take 3.7 GiB.
inline constexpr std::size_t kMaxYamlLine = 1u << 20;

/// What must be told before a text is given to yaml-cpp, or nothing: too large, not UTF-8, control
/// characters (NUL among them), a tab in the indentation. The first of them, with its position.
[[nodiscard]] std::optional<Problem> CheckYamlText(std::string_view text);

}  // namespace tidegate

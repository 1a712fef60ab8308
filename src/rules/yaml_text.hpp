// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "rules/problem.hpp"

namespace tidegate {

inline constexpr std::size_t kMaxYamlBytes = 16u << 20;

/// What must be told before a text is given to libyaml, or nothing: too large, not UTF-8, control
/// characters (NUL among them), a tab in the indentation, a
/// directive. The first of them, with its position.
[[nodiscard]] std::optional<Problem> CheckYamlText(std::string_view text);

}  // namespace tidegate

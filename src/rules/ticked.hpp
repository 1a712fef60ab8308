// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate {

/// A word of the configuration in a message: `word`.
[[nodiscard]] inline std::string Ticked(std::string_view text) {
  return "`" + std::string{text} + "`";
}

}  // namespace tidegate

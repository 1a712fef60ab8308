// SPDX-License-Identifier: Apache-2.0
#include "rules/problem.hpp"

namespace tidegate {

std::string Problem::Text(std::string_view file) const {
  std::string text{file};
  if (at.line > 0) text += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  text += severity == Severity::kError ? ": error: " : ": warning: ";
  if (!where.empty()) text += where + ": ";
  return text + message;
}

}  // namespace tidegate

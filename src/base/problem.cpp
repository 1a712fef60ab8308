// SPDX-License-Identifier: Apache-2.0
#include "base/problem.hpp"

#include <mutex>
#include <set>

namespace tidegate {

SourceFile::SourceFile(const std::string& path, int order) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::pair<std::string, int>>;  // Outlives all static objects.
  const std::lock_guard lock(mutex);
  name_ = &*names.emplace(path, order).first;
}

std::string Problem::Text(std::string_view main_file) const {
  std::string text{FileOr(main_file)};
  if (at.line > 0) text += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  text += severity == Severity::kError ? ": error: " : ": warning: ";
  if (!where.empty()) text += where + ": ";
  return text + message;
}

std::string LineOf(const Position& at, const Position& here) {
  std::string text = "line " + std::to_string(at.line);
  if (at.file == here.file) return text;
  return text + " of " + (at.file.is_main() ? "the main file" : std::string(at.file.path()));
}

}  // namespace tidegate

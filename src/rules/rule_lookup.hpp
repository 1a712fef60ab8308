// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rules/config.hpp"

namespace tidegate {

/// Rules by the host and the first segment of the path that they match, to compare each rule
/// with the few that could matter to it: 10,000 rules against each other would be 10^8 comparisons.
/// What it returns is a superset; the caller compares.
class RuleLookup {
 public:
  /// REQUIRES: `match` outlives this.
  void Add(const MatchSpec& match);

  /// Whether one of those that could cover `match` does. Nothing more is found, and exhausted()
  /// becomes true, after some 100 ms of comparing: a set of rules that is so hard to judge is not
  /// worth the wait.
  [[nodiscard]] bool AnyCovers(const MatchSpec& match) { return FindCover(match) != nullptr; }
  /// That one, or nullptr.
  [[nodiscard]] const MatchSpec* FindCover(const MatchSpec& match);
  [[nodiscard]] bool AnyOverlaps(const MatchSpec& match);
  [[nodiscard]] bool exhausted() const noexcept { return budget_ <= 0; }

 private:
  enum class Ask : std::uint8_t { kCover, kOverlap };
  [[nodiscard]] const MatchSpec* Find(const MatchSpec& match, Ask ask);

  std::unordered_map<std::string, std::vector<const MatchSpec*>> by_place_;
  std::int64_t budget_ = 5'000'000;
};

}  // namespace tidegate

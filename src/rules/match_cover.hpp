// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rules/match_spec.hpp"

namespace tidegate {

/// Returns true if `wide` certainly matches every request that `narrow` matches. Compares header
/// patterns as text, and requires a single alternative of `wide` for each alternative of `narrow`.
[[nodiscard]] bool Covers(const MatchSpec& wide, const MatchSpec& narrow);

/// Returns false if certainly no request matches both specs. Assumes that all header conditions are
/// compatible; exceptions (`none`) count only if one excludes everything.
[[nodiscard]] bool Overlap(const MatchSpec& a, const MatchSpec& b);

/// Finds matches by host and first path segment, so that each match is compared only with the few
/// that can be related to it: otherwise 10,000 rules would need 10^8 comparisons. Not thread-safe.
class RuleLookup {
 public:
  /// REQUIRES: `match` outlives this object.
  void Add(const MatchSpec& match);

  /// Returns true if one of the added matches covers `match`. After some 100 ms of comparing,
  /// exhausted() becomes true and nothing more is found, so that no set of rules takes too long.
  [[nodiscard]] bool AnyCovers(const MatchSpec& match) { return FindCover(match) != nullptr; }
  /// Returns an added match that covers `match`, or nullptr.
  [[nodiscard]] const MatchSpec* FindCover(const MatchSpec& match);
  [[nodiscard]] bool AnyOverlaps(const MatchSpec& match);
  [[nodiscard]] bool exhausted() const noexcept { return budget_ <= 0; }

 private:
  enum class Relation : std::uint8_t { kCover, kOverlap };
  [[nodiscard]] const MatchSpec* Find(const MatchSpec& match, Relation relation);

  std::unordered_map<std::string, std::vector<const MatchSpec*>> by_place_;
  std::int64_t budget_ = 5'000'000;
};

}  // namespace tidegate

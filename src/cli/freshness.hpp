// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/members.hpp"

namespace tidegate::cli {

/// How far a node's word about the fleet's overrides is to be believed. It asks Redis for them once
/// a second; where it is told no answer, what it knew stays.
struct Freshness {
  bool known = true;                                  ///< False: it never was told.
  std::optional<std::chrono::milliseconds> age = {};  ///< None: they are the node's own.

  /// Of `/v1/overrides`, or of `overrides` in `/v1/status`.
  [[nodiscard]] static Freshness Of(const Members& overrides);
  /// Known, and confirmed not long ago.
  [[nodiscard]] bool good() const noexcept;
  /// `as of 40 s ago`, or that they are not known; empty: there is nothing to say.
  [[nodiscard]] std::string Text() const;
};

}  // namespace tidegate::cli

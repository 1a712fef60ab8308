// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tidegate {

/// How to write a pattern of another router, such as `/users/{id}`, `/users/<int:id>` or
/// `^/api/.*$`, in this configuration.
struct ForeignPath {
  std::string write;  ///< The pattern to write, in backticks: `/users/:id`, or `[/v1/a, /v1/b]`.
  bool exact = true;  ///< False: `write` matches more than the foreign pattern.
};

/// Returns how to write `path` here if it is a pattern of another router or a regular expression;
/// otherwise nothing. Characters that are common in paths, such as `(`, do not make a pattern.
[[nodiscard]] std::optional<ForeignPath> ReadForeignPath(std::string_view path);

}  // namespace tidegate

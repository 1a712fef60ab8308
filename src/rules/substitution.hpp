// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "rules/config.hpp"

namespace tidegate {

/// Puts the environment into a value: `${NAME}`, `${NAME:-default}` where it is unset or empty, and
/// `$${` for a literal `${`. The error is a message that names the variable, never a value.
[[nodiscard]] std::expected<std::string, std::string> Substitute(std::string_view text,
                                                                 Environment environment);

/// What one secret may hold. A bundle of authorities has some 200 KiB.
inline constexpr std::size_t kMaxSecretFile = 64u << 10;
inline constexpr std::size_t kMaxBundleFile = 1u << 20;

struct SecretFile {
  FileSeen seen;  ///< Without a path: there was none to look at.
  /// Without one final newline. The error is a message that names the path, never what is in it.
  std::expected<std::string, std::string> content;
};

/// Reads a secret's file of at most `max_bytes`. A relative path begins in `folder`.
[[nodiscard]] SecretFile ReadSecretFile(const std::string& path, const std::string& folder,
                                        std::size_t max_bytes = kMaxSecretFile);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tidegate {

/// Who did what to which key, for the record.
struct AuditEntry {
  std::string node;
  std::string by;      ///< A token's name, or how else the caller is known.
  std::string from;    ///< The caller's address.
  std::string action;  ///< `ban`, `reset`, ...
  std::string rule;
  std::string key;     ///< Its identity: secrets are hashes in it.
  std::string detail;  ///< For people.

  /// JSON.
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] static std::optional<AuditEntry> Parse(std::string_view text);
};

}  // namespace tidegate

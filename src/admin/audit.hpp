// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate {

/// An audit record: either a change by an operator (its name, the key and the action), or a summary
/// of failed authentications (see AuthAudit).
struct AuditEntry {
  /// Returns an entry for the request in `exchange`.
  [[nodiscard]] static AuditEntry Of(const std::string& node, const std::string& by,
                                     const net::HttpExchange& exchange, std::string_view action);

  std::string node;
  std::string by;      ///< The name of the caller's token, or how it authenticated otherwise.
  std::string from;    ///< The caller's address.
  std::string action;  ///< `ban`, `reset`, `auth_failed`, ...
  std::string rule;    ///< The rule and the key are empty if no key was changed (`reload`).
  std::string key;     ///< The key's identity; secrets in it are hashed.
  std::string detail;  ///< For people.

  /// Returns the entry as JSON.
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] static std::optional<AuditEntry> Parse(std::string_view text);

  /// Writes a line to the node's log: the change was made, or there was nothing to change.
  void LogDone(bool applied) const;
  /// Writes a line to the node's log: the change was not made, or may not have been.
  void LogFailed(const std::string& why, std::string_view outcome) const;
};

}  // namespace tidegate

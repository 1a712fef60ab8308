// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate {

/// Who did what to which key, for the record.
struct AuditEntry {
  /// Of what `exchange` asks for.
  [[nodiscard]] static AuditEntry Of(const std::string& node, const std::string& by,
                                     const net::HttpExchange& exchange, std::string_view action);

  std::string node;
  std::string by;      ///< A token's name, or how else the caller is known.
  std::string from;    ///< The caller's address.
  std::string action;  ///< `ban`, `reset`, ...
  std::string rule;    ///< Empty, as the key: it was no key that was changed.
  std::string key;     ///< Its identity: secrets are hashes in it.
  std::string detail;  ///< For people.

  /// JSON.
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] static std::optional<AuditEntry> Parse(std::string_view text);

  /// A line of the node's own log: it was done, or there was nothing to do.
  void LogDone(bool applied) const;
  /// Likewise: it was not done, or perhaps not.
  void LogFailed(const std::string& why) const;
};

}  // namespace tidegate

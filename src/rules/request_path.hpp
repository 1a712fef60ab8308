// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory_resource>
#include <string>
#include <string_view>

#include "rules/path.hpp"

namespace tidegate {

/// What the upstream receives.
enum class Forwarding : std::uint8_t {
  kNormalized,  ///< RequestPath::forwarded.
  /// The path as the client sent it, because another proxy forwards the request. `..` segments are
  /// refused: rules would see the resolved path, and servers such as Express do not resolve it.
  kAsSent,
};

/// How paths of requests and patterns are compared.
struct PathOptions {
  Forwarding forwarding = Forwarding::kNormalized;
  Slashes forwarded_slashes = Slashes::kMerge;  ///< In RequestPath::forwarded only.
  bool ignore_case = false;
  EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
};

/// The path of a request in the forms in which it is forwarded and compared with patterns. Servers
/// read paths differently, and a rule must see at least what the upstream could see. Nearly always
/// all three are the path as sent.
struct RequestPath {
  /// What the upstream receives: the normal form of rules/path.hpp.
  std::string_view forwarded;
  /// The form that patterns are compared with. Differs from `forwarded` only in ways that few
  /// servers tell apart: reserved characters are decoded (`%40` is `@`), duplicate slashes are
  /// merged, a final slash is removed, and letters are in lower case if case is ignored.
  std::string_view canonical;
  /// What lenient servers make of `canonical`: `;` parameters removed from each segment, encoded
  /// slashes and backslashes taken for slashes, and white space around a segment and dots at its
  /// end removed.
  std::string_view lenient;
  /// The path contains `%2F`, `%5C` or `\`.
  bool has_encoded_separator = false;
  /// The upstream receives dot segments or duplicate slashes that none of these forms has.
  bool differs_from_upstream = false;
};

/// Reads the path of a request, without its query. Allocates from `memory` only what differs from
/// `path`.
[[nodiscard]] std::expected<RequestPath, PathError> ReadRequestPath(
    std::string_view path, const PathOptions& options, std::pmr::memory_resource& memory);

/// Returns the message to a client whose path is refused.
[[nodiscard]] std::string InvalidPath(std::string_view path, PathError error);

/// Returns RequestPath::canonical of a path in normal form. Also for patterns: `:name` and `**` are
/// kept, except that names become lower case if case is ignored.
[[nodiscard]] std::string_view CanonicalPath(std::string_view normal, bool ignore_case,
                                             std::pmr::memory_resource& memory);

}  // namespace tidegate

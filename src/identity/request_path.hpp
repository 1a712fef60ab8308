// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory_resource>
#include <string>
#include <string_view>

#include "identity/path.hpp"

namespace tidegate {

/// The path that the upstream receives.
enum class Forwarding : std::uint8_t {
  kNormalized,  ///< RequestPath::forwarded is sent.
  /// The path as the client sent it, because another proxy forwards the request. `..` segments are
  /// refused: rules would see the resolved path, and servers such as Express do not resolve it.
  kAsSent,
};

/// How paths of requests and patterns are compared.
struct PathOptions {
  Forwarding forwarding = Forwarding::kNormalized;
  Slashes forwarded_slashes = Slashes::kMerge;  ///< Affects RequestPath::forwarded only.
  bool ignore_case = false;
  EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
};

/// The path of a request in three forms: the one that is forwarded and two that are compared with
/// patterns. Servers read paths differently, and rules must match every path that the upstream
/// could read. Nearly always all three forms are the path as sent.
struct RequestPath {
  /// The path that the upstream receives, in the normal form of identity/path.hpp.
  std::string_view forwarded;
  /// The form that patterns are compared with. Differs from `forwarded` only in ways that few
  /// servers tell apart: reserved characters are decoded (`%40` is `@`), duplicate slashes are
  /// merged, a final slash is removed, and letters are in lower case if case is ignored.
  std::string_view canonical;
  /// The path that lenient servers may read instead of `canonical`: without `;` parameters, white
  /// space around segments and dots at their end; encoded slashes and backslashes are slashes.
  std::string_view lenient;
  /// True: the path contains `%2F`, `%5C` or `\`.
  bool has_encoded_separator = false;
  /// True: the upstream receives dot segments or duplicate slashes that no form above has.
  bool differs_from_upstream = false;
};

/// Reads a request's path, without its query. Allocates only the forms that differ from `path`.
[[nodiscard]] std::expected<RequestPath, PathError> ReadRequestPath(
    std::string_view path, const PathOptions& options, std::pmr::memory_resource& memory);

/// Returns the message to a client whose path is rejected.
[[nodiscard]] std::string InvalidPath(std::string_view path, PathError error);

/// Returns RequestPath::canonical of a path in normal form. Also accepts patterns: `:name` and `**`
/// are kept, except that names become lower case if case is ignored.
[[nodiscard]] std::string_view CanonicalPath(std::string_view normal, bool ignore_case,
                                             std::pmr::memory_resource& memory);

}  // namespace tidegate

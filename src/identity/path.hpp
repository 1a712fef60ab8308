// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory_resource>
#include <optional>
#include <string_view>

namespace tidegate {

enum class Slashes : std::uint8_t { kKeep, kMerge };

/// The treatment of requests whose path contains an encoded slash or backslash (`%2F`, `%5C`).
enum class EncodedSlashes : std::uint8_t {
  kReject,
  kMatch,  ///< Patterns match it both as a character of its segment and as a separator.
};

/// How every frontend reads the paths of requests.
struct PathPolicy {
  bool ignore_case = false;
  EncodedSlashes encoded_slashes = EncodedSlashes::kReject;
};

/// The reason why a path is rejected.
enum class PathError : std::uint8_t {
  kNoSlash,              ///< The path does not begin with `/`.
  kBadByte,              ///< A space, a control character, `?` or `#`.
  kBadEncoding,          ///< `%` without two hexadecimal digits, or `%00`.
  kAboveRoot,            ///< `..` leaves the root.
  kAmbiguousDots,        ///< A dot segment that some servers resolve in another way.
  kAmbiguousParameters,  ///< `;` parameters that some servers remove with more than themselves.
  kBlankSegment,         ///< A segment of white space only.
  kTwoSlashes,           ///< The path begins with `//`, and duplicate slashes are forwarded.
  kEncodedSeparator,     ///< `%2F`, `%5C` or `\` where the configuration does not allow it.
};
/// Returns what is wrong with the path and, if the client can fix it, how. Static text.
[[nodiscard]] std::string_view Message(PathError error) noexcept;

/// Returns the normal form of a path: dot segments removed, percent-encoded unreserved characters
/// decoded, other percent-encodings in upper case, bytes that RFC 3986 does not allow in a path
/// (`|`, `[`, UTF-8, ...) percent-encoded, and duplicate slashes merged if `slashes` says so.
/// Returns `path` itself if it is normal; otherwise allocates. Finds only the first four errors.
[[nodiscard]] std::expected<std::string_view, PathError> NormalizePath(
    std::string_view path, Slashes slashes, std::pmr::memory_resource& memory);

/// Returns the normal form of a host: lower case, without port and without a final dot; IPv6 in
/// brackets. Returns nothing if the host is empty or has a character that hosts cannot have.
[[nodiscard]] std::optional<std::string_view> NormalizeHost(std::string_view host,
                                                            std::pmr::memory_resource& memory);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string_view>

namespace tidegate {

enum class Slashes : std::uint8_t { kKeep, kMerge };

/// The one form of a path that routing and rules see: dot segments removed, percent-encoded
/// unreserved characters decoded, other percent-encodings in upper case, duplicate slashes merged
/// if asked. Nothing if it does not begin with '/', holds a byte outside the URI grammar or a
/// broken or NUL percent-encoding, or climbs above the root. Returns `path` itself where it is
/// normal already; else allocates from `memory`.
[[nodiscard]] std::optional<std::string_view> NormalizePath(std::string_view path, Slashes slashes,
                                                            std::pmr::memory_resource& memory);

/// Whether a server that decodes `%2F` or `%5C` before it resolves dot segments, or that cuts
/// parameters off (`..;x`), may find its way to another path than NormalizePath: there is a dot
/// segment, and an encoded separator or a backslash as well, or parameters on the dot segment. They
/// need not be neighbours: `/a%2Fb/../c` is `/c` to one reader and `/a/c` to another. Of a path as
/// it came: the normal form may have lost the segment that matters.
[[nodiscard]] bool MayClimbElsewhere(std::string_view path) noexcept;

/// The one form of a host: lower case, without port and without a final dot; IPv6 in brackets.
/// Nothing if it is empty or holds a character that no host has.
[[nodiscard]] std::optional<std::string_view> NormalizeHost(std::string_view host,
                                                            std::pmr::memory_resource& memory);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidegate {

/// Whether control characters are white space too. No header field contains any but tabs; in a path
/// or a query they may come percent-encoded.
enum class Controls : std::uint8_t { kKeep, kTrim };

/// Returns the size of the UTF-8 character that `text` begins with; 1 if there is none.
/// REQUIRES: not empty.
[[nodiscard]] std::size_t CharacterSize(std::string_view text) noexcept;

/// Returns the size of the white space that `text` begins with; 0: none. White space is a space or
/// tab, or a space of Latin-1 (which is how many servers decode header fields) or of Unicode in
/// UTF-8. These are the characters that string functions of Python, Java and JavaScript strip.
[[nodiscard]] std::size_t SpaceAtBegin(std::string_view text,
                                       Controls controls = Controls::kKeep) noexcept;
/// The same for the end of `text`.
[[nodiscard]] std::size_t SpaceAtEnd(std::string_view text,
                                     Controls controls = Controls::kKeep) noexcept;

/// Removes the white space at both ends.
[[nodiscard]] std::string_view TrimSpaces(std::string_view text,
                                          Controls controls = Controls::kKeep) noexcept;

}  // namespace tidegate

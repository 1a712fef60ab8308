// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tidegate {

/// Returns the size of the white space that `text` begins with: ASCII white space and controls, or
/// a space of Latin-1 (which is how many servers decode header fields) or of Unicode in UTF-8.
/// These are the characters that string functions of Python, Java and JavaScript strip. 0: none.
[[nodiscard]] std::size_t SpaceAtBegin(std::string_view text) noexcept;
/// The same for the end of `text`.
[[nodiscard]] std::size_t SpaceAtEnd(std::string_view text) noexcept;

/// Removes the white space at both ends.
[[nodiscard]] std::string_view TrimSpaces(std::string_view text) noexcept;

}  // namespace tidegate

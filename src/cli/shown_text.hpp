// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidegate::cli {

/// Foreign text, fit for a terminal: what controls one, what turns the direction of writing, what
/// takes no place and what is not UTF-8 is shown as `\n`, `\x1b` or `\u{202e}`. A backslash stays
/// as it is: this is for eyes, not for reading back.
[[nodiscard]] std::string Shown(std::string_view text);

/// Whether all of it is UTF-8.
[[nodiscard]] bool IsUtf8(std::string_view text) noexcept;

/// As Shown, for JSON that was parsed: `\u009b` instead of the character. Its meaning stays, since
/// such characters can only stand inside of strings.
[[nodiscard]] std::string ShownJson(std::string_view json);

/// How many columns a Shown text takes.
[[nodiscard]] std::size_t WidthOf(std::string_view shown);

/// As much of a Shown text as fits so many columns; what is cut ends in `..`, if that fits.
[[nodiscard]] std::string Clipped(std::string_view shown, std::size_t columns);

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// UTF-8, and the white space that servers remove from values.

namespace tidegate {

/// Returns the length of the UTF-8 character that `text`, which is not empty, begins with; 0 if it
/// is invalid, as overlong forms, surrogates and characters above U+10FFFF are (RFC 3629).
[[nodiscard]] constexpr std::size_t Utf8Length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  // The range of the second byte excludes overlong forms, surrogates and too large characters.
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

/// Whether white space includes control characters. Of these, header fields contain only tabs;
/// paths and queries may contain any of them percent-encoded.
enum class Controls : std::uint8_t { kKeep, kTrim };

/// Returns the length of the character at the beginning of `text`. Unlike Utf8Length, accepts
/// overlong forms and surrogates, and returns 1 for other bytes. REQUIRES: `text` is not empty.
[[nodiscard]] std::size_t CharacterSize(std::string_view text) noexcept;

/// Returns the size of the white space character that `text` begins with; 0 if there is none: a
/// space, a tab, or a space of Latin-1 (as which many servers decode header fields) or Unicode.
/// String functions of Python, Java and JavaScript strip these characters.
[[nodiscard]] std::size_t SpaceAtBegin(std::string_view text,
                                       Controls controls = Controls::kKeep) noexcept;
/// Returns the size of the white space character that `text` ends with; 0 if there is none.
[[nodiscard]] std::size_t SpaceAtEnd(std::string_view text,
                                     Controls controls = Controls::kKeep) noexcept;

[[nodiscard]] std::string_view TrimSpaces(std::string_view text,
                                          Controls controls = Controls::kKeep) noexcept;

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

#include <algorithm>

namespace tidegate {
namespace {

/// Spaces beyond ASCII. The last two have one byte each. Such a byte is a space only if it is not
/// part of a UTF-8 character, because many letters end with these bytes.
constexpr std::string_view kWideSpaces[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
    "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
    "\xe3\x80\x80", "\xef\xbb\xbf", "\xa0",         "\x85"};

bool IsWide(char c) noexcept { return static_cast<unsigned char>(c) >= 0x80; }

/// Returns the size of `character` if it is a space beyond ASCII, else 0.
std::size_t SpaceSize(std::string_view character) noexcept {
  return std::ranges::find(kWideSpaces, character) == std::end(kWideSpaces) ? 0 : character.size();
}

bool IsAsciiSpace(char c, Controls controls) noexcept {
  if (c == ' ' || c == '\t') return true;
  return controls == Controls::kTrim && (static_cast<unsigned char>(c) < ' ' || c == 0x7F);
}

}  // namespace

std::size_t CharacterSize(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t size = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 1;
  if (size > text.size() || byte(0) > 0xF4) return 1;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 1;
  }
  return size;
}

std::size_t SpaceAtBegin(std::string_view text, Controls controls) noexcept {
  if (text.empty()) return 0;
  if (!IsWide(text.front())) return IsAsciiSpace(text.front(), controls) ? 1 : 0;
  return SpaceSize(text.substr(0, CharacterSize(text)));
}

std::size_t SpaceAtEnd(std::string_view text, Controls controls) noexcept {
  if (text.empty()) return 0;
  if (!IsWide(text.back())) return IsAsciiSpace(text.back(), controls) ? 1 : 0;
  for (std::size_t size = std::min<std::size_t>(4, text.size()); size > 1; --size) {
    const std::string_view end = text.substr(text.size() - size);
    if (CharacterSize(end) == size) return SpaceSize(end);
  }
  return SpaceSize(text.substr(text.size() - 1));
}

std::string_view TrimSpaces(std::string_view text, Controls controls) noexcept {
  while (const std::size_t size = SpaceAtBegin(text, controls)) text.remove_prefix(size);
  while (const std::size_t size = SpaceAtEnd(text, controls)) text.remove_suffix(size);
  return text;
}

}  // namespace tidegate

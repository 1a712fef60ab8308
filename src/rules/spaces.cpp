// SPDX-License-Identifier: Apache-2.0
#include "rules/spaces.hpp"

#include <algorithm>

namespace tidegate {
namespace {

/// Spaces beyond ASCII; those of one byte are the last, because they end some of the others.
constexpr std::string_view kWideSpaces[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
    "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
    "\xe3\x80\x80", "\xef\xbb\xbf", "\xa0",         "\x85"};

bool IsWide(char c) noexcept { return static_cast<unsigned char>(c) >= 0x80; }

bool IsAsciiSpace(char c, Controls controls) noexcept {
  if (c == ' ' || c == '\t') return true;
  return controls == Controls::kTrim && (static_cast<unsigned char>(c) < ' ' || c == 0x7F);
}

}  // namespace

std::size_t SpaceAtBegin(std::string_view text, Controls controls) noexcept {
  if (text.empty()) return 0;
  if (!IsWide(text.front())) return IsAsciiSpace(text.front(), controls) ? 1 : 0;
  const auto* const found =
      std::ranges::find_if(kWideSpaces, [&](auto space) { return text.starts_with(space); });
  return found == std::end(kWideSpaces) ? 0 : found->size();
}

std::size_t SpaceAtEnd(std::string_view text, Controls controls) noexcept {
  if (text.empty()) return 0;
  if (!IsWide(text.back())) return IsAsciiSpace(text.back(), controls) ? 1 : 0;
  const auto* const found =
      std::ranges::find_if(kWideSpaces, [&](auto space) { return text.ends_with(space); });
  return found == std::end(kWideSpaces) ? 0 : found->size();
}

std::string_view TrimSpaces(std::string_view text, Controls controls) noexcept {
  while (const std::size_t size = SpaceAtBegin(text, controls)) text.remove_prefix(size);
  while (const std::size_t size = SpaceAtEnd(text, controls)) text.remove_suffix(size);
  return text;
}

}  // namespace tidegate

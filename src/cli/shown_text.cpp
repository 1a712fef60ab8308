// SPDX-License-Identifier: Apache-2.0
#include "cli/shown_text.hpp"

#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cwchar>

namespace tidegate::cli {
namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: this is not UTF-8.
};

/// The first one. REQUIRES: not empty.
CodePoint First(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(text[i] & 0xFF); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return {};
  std::uint32_t value = first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, size};
}

/// Its columns; 0 or less: nobody would see it, or a terminal would obey it.
int ColumnsOf(std::uint32_t value) noexcept {
  if (value < 0x80) return value >= 0x20 && value != 0x7F ? 1 : -1;
  // The C library's table, whatever the user's locale: that of the program is left alone.
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) return -1;
  const locale_t before = uselocale(locale);
  const int columns = wcwidth(static_cast<wchar_t>(value));
  uselocale(before);
  return columns;
}

std::string Escaped(const CodePoint& point, char byte) {
  if (point.bytes == 1 && point.value == '\n') return "\\n";
  if (point.bytes == 1 && point.value == '\t') return "\\t";
  char text[16];
  if (point.bytes <= 1) {
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned>(byte & 0xFF));
  } else {
    std::snprintf(text, sizeof text, "\\u{%x}", static_cast<unsigned>(point.value));
  }
  return text;
}

}  // namespace

std::string Shown(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = First(text);
    const std::size_t size = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes != 0 && ColumnsOf(point.value) > 0) {
      out += text.substr(0, size);
    } else {
      out += Escaped(point, text.front());
    }
    text.remove_prefix(size);
  }
  return out;
}

bool IsUtf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = First(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string ShownJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const CodePoint point = First(json);
    const std::size_t size = point.bytes == 0 ? 1 : point.bytes;
    const bool blank = point.value == '\n' || point.value == '\t' || point.value == '\r';
    if (blank || (point.bytes != 0 && (point.value >= 0x10000 || ColumnsOf(point.value) > 0))) {
      out += json.substr(0, size);
    } else {
      char text[16];
      std::snprintf(text, sizeof text, "\\u%04x",
                    static_cast<unsigned>(point.bytes == 0 ? 0xFFFD : point.value));
      out += text;
    }
    json.remove_prefix(size);
  }
  return out;
}

std::size_t WidthOf(std::string_view shown) {
  std::size_t width = 0;
  while (!shown.empty()) {
    const CodePoint point = First(shown);
    const int columns = point.bytes == 0 ? 1 : ColumnsOf(point.value);
    width += columns > 0 ? static_cast<std::size_t>(columns) : 0;
    shown.remove_prefix(point.bytes == 0 ? 1 : point.bytes);
  }
  return width;
}

std::string Clipped(std::string_view shown, std::size_t columns) {
  if (WidthOf(shown) <= columns) return std::string(shown);
  const std::size_t room = columns >= 4 ? columns - 2 : columns;
  std::size_t width = 0;
  std::size_t bytes = 0;
  while (bytes < shown.size()) {
    const CodePoint point = First(shown.substr(bytes));
    const std::size_t size = point.bytes == 0 ? 1 : point.bytes;
    const std::size_t more = WidthOf(shown.substr(bytes, size));
    if (width + more > room) break;
    width += more;
    bytes += size;
  }
  return std::string(shown.substr(0, bytes)) + (columns >= 4 ? ".." : "");
}

}  // namespace tidegate::cli

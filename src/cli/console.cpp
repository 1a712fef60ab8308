// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cwchar>
#include <iostream>
#include <ranges>

#include "base/units.hpp"
#include "base/utf8.hpp"

namespace tidegate::cli {

namespace {

/// Returns `value` with `digits` digits after the point.
std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// Returns `value` with three significant digits: 1.25, 12.5, 125.
std::string Three(double value) {
  if (value < 9.995) return Fixed(value, 2);
  return Fixed(value, value < 99.95 ? 1 : 0);
}

/// One character of a text, or one byte that is not UTF-8.
struct Character {
  std::string_view bytes;
  std::uint32_t value = 0;
  bool valid = false;

  /// Returns the character's columns; 0 or less if it is invisible or controls the terminal.
  [[nodiscard]] int Columns() const noexcept;
};

/// Removes and returns the first character. REQUIRES: `text` is not empty.
Character Take(std::string_view& text) noexcept {
  const std::size_t length = Utf8Length(text);
  const std::size_t size = std::max<std::size_t>(length, 1);
  Character character{text.substr(0, size), static_cast<std::uint32_t>(text[0] & 0xFF),
                      length != 0};
  if (size > 1) {
    character.value &= 0x7Fu >> size;
    for (const char c : character.bytes.substr(1)) {
      character.value = character.value << 6 | static_cast<std::uint32_t>(c & 0x3F);
    }
  }
  text.remove_prefix(size);
  return character;
}

int Character::Columns() const noexcept {
  if (!valid) return -1;
  if (value < 0x80) return value >= 0x20 && value != 0x7F ? 1 : -1;
  // Uses the C library's table in a fixed locale, and then restores the locale of the thread.
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) return -1;
  const locale_t before = uselocale(locale);
  const int columns = wcwidth(static_cast<wchar_t>(value));
  uselocale(before);
  return columns;
}

std::string Hex(const char* format, std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(value));
  return text;
}

std::string Escaped(const Character& character) {
  if (character.value == '\n') return "\\n";
  if (character.value == '\t') return "\\t";
  return Hex(character.bytes.size() == 1 ? "\\x%02x" : "\\u{%x}", character.value);
}

}  // namespace

std::string Count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string Rate(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) return "0";
  if (per_second < 9.95) return Fixed(per_second, 1);
  return Count(std::llround(std::min(per_second, 9e18)));
}

std::string Share(double part, double of) {
  if (of <= 0) return "-";
  return Fixed(100 * part / of, 1) + "%";
}

std::string Bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {" KiB", " MiB", " GiB", " TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Fixed(value, 1) + std::string(kUnits[unit]);
}

std::string Seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const double us = seconds * 1e6;
  if (us < 999.5) return (us < 9.995 ? Fixed(us, 1) : Fixed(us, 0)) + " us";
  if (us < 999'500) return Three(us / 1e3) + " ms";
  return Three(seconds) + " s";
}

std::string Span(std::chrono::milliseconds span) {
  if (span.count() < 1000) return std::to_string(std::max<std::int64_t>(span.count(), 0)) + " ms";
  return FormatDuration(std::chrono::floor<std::chrono::seconds>(span));
}

std::string TimeStamp(std::int64_t ms_since_epoch) {
  const std::time_t seconds = static_cast<std::time_t>(ms_since_epoch / 1000);
  std::tm parts{};
  char text[64];
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts) == 0) {
    return "-";
  }
  return text;
}

std::string Plural(std::int64_t count, const std::string& noun) {
  return Count(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string Shown(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = Take(text);
    character.Columns() > 0 ? out.append(character.bytes) : out.append(Escaped(character));
  }
  return out;
}

bool IsUtf8(std::string_view text) noexcept {
  while (!text.empty()) {
    if (!Take(text).valid) return false;
  }
  return true;
}

std::string ShownJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Character character = Take(json);
    const std::uint32_t value = character.value;
    const bool blank = value == '\n' || value == '\t' || value == '\r';
    if (blank || character.Columns() > 0 || (character.valid && value >= 0x10000)) {
      out += character.bytes;
    } else {
      out += Hex("\\u%04x", character.valid ? value : 0xFFFD);
    }
  }
  return out;
}

std::size_t WidthOf(std::string_view shown) {
  std::size_t width = 0;
  while (!shown.empty()) {
    const Character character = Take(shown);
    width += static_cast<std::size_t>(character.valid ? std::max(character.Columns(), 0) : 1);
  }
  return width;
}

std::string Clipped(std::string_view shown, std::size_t columns) {
  if (WidthOf(shown) <= columns) return std::string(shown);
  const std::size_t room = columns >= 4 ? columns - 2 : columns;
  std::string out;
  for (std::size_t width = 0; !shown.empty();) {
    const std::string_view bytes = Take(shown).bytes;
    width += WidthOf(bytes);
    if (width > room) break;
    out += bytes;
  }
  return out + (columns >= 4 ? ".." : "");
}

std::string Styled(std::string_view text, Style style, Colours colours) {
  if (colours == Colours::kOff || style == Style::kPlain || text.empty()) return std::string(text);
  constexpr std::string_view kCodes[] = {"",         "\x1b[32m", "\x1b[31m",
                                         "\x1b[33m", "\x1b[2m",  "\x1b[1m"};
  return std::string(kCodes[static_cast<std::size_t>(style)]).append(text).append("\x1b[0m");
}

Colours ColoursOf(int fd) {
  if (isatty(fd) == 0) return Colours::kOff;
  const char* const none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return Colours::kOff;
  const char* const term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") return Colours::kOff;
  return Colours::kOn;
}

Console StandardConsole() { return {std::cout, std::cerr, ColoursOf(STDOUT_FILENO)}; }

Cell::Cell(const std::string& cell_text, Style cell_style)
    : text(Shown(cell_text)), style(cell_style) {}

Table::Table(std::string_view heads) {
  for (const auto part : std::views::split(heads, '|')) {
    std::string_view head(part.begin(), part.end());
    const bool right = head.starts_with('>');
    if (right) head.remove_prefix(1);
    columns_.push_back({std::string(head), right});
  }
}

void Table::Print(const Console& console, std::string_view indent) const {
  std::vector<std::size_t> widths;
  std::vector<Cell> heads;
  bool headed = false;
  for (const Column& column : columns_) {
    widths.push_back(WidthOf(column.head));
    heads.emplace_back(column.head, Style::kQuiet);
    headed |= !column.head.empty();
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], WidthOf(row[i].text));
    }
  }
  const auto line = [&](const std::vector<Cell>& row) {
    std::string text(indent);
    std::size_t last = row.size();
    while (last > 0 && row[last - 1].text.empty()) --last;
    for (std::size_t i = 0; i < last; ++i) {
      const std::string blanks(widths[i] - WidthOf(row[i].text), ' ');
      const bool right = columns_[i].right;
      text.append(i == 0 ? "" : "  ").append(right ? blanks : "");
      text += console.Paint(row[i].text, row[i].style);
      if (!right && i + 1 < last) text += blanks;
    }
    console.out << text << '\n';
  };
  if (headed) line(heads);
  for (const auto& row : rows_) line(row);
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/clock.hpp"

namespace tidegate::cli {

// Numbers for people.
[[nodiscard]] std::string Count(std::int64_t count);      ///< `12,345`
[[nodiscard]] std::string Rate(double per_second);        ///< `12,345`; `0.4` below ten
[[nodiscard]] std::string Share(double part, double of);  ///< `1.9%`; `-` if `of` is 0
[[nodiscard]] std::string Bytes(std::int64_t bytes);      ///< `512 B`, `1.5 MiB`
[[nodiscard]] std::string Seconds(double seconds);        ///< `85 us`, `1.3 ms`, `2.5 s`
/// Returns a duration without fractions: `14 s`, `2 min 3 s`, `5 d 2 h`.
[[nodiscard]] std::string Span(std::chrono::milliseconds span);
/// Returns a time in UTC, so that records of nodes in different time zones can be compared:
/// `2024-01-31 09:05:07Z`.
[[nodiscard]] std::string TimeStamp(std::int64_t ms_since_epoch);
/// `1 rule`, `2 rules`
[[nodiscard]] std::string Plural(std::int64_t count, const std::string& noun);

// Functions that make foreign text safe for a terminal.

/// Returns `text` with escapes for every character that controls the terminal, changes the
/// direction of writing or takes no column, and for bytes that are not UTF-8: `\n`, `\x1b`,
/// `\u{202e}`. Backslashes are not escaped, because the result is for people and is never parsed.
[[nodiscard]] std::string Shown(std::string_view text);
/// Returns a JSON text with the same characters escaped, as in `\u009b`. The JSON keeps its
/// meaning, because these characters can only be inside strings.
[[nodiscard]] std::string ShownJson(std::string_view json);
[[nodiscard]] bool IsUtf8(std::string_view text) noexcept;
/// Returns the number of columns that a result of Shown takes.
[[nodiscard]] std::size_t WidthOf(std::string_view shown);
/// Cuts a result of Shown to `columns`. A cut text ends in `..` if there is room for it.
[[nodiscard]] std::string Clipped(std::string_view shown, std::size_t columns);

/// The exit codes of every subcommand.
enum Exit : int {
  kOk = 0,       ///< Done; `decide`: allowed.
  kRuntime = 1,  ///< Something failed while it ran; `decide`: denied.
  kUsage = 2,    ///< The command line, the request or the configuration is wrong.
  kNoAnswer = 3  ///< No server could be reached, or it failed.
};

enum class Colours : std::uint8_t { kOff, kOn };
enum class Style : std::uint8_t { kPlain, kGood, kBad, kWarning, kQuiet, kStrong };

/// Returns `text` between the codes of its style; unchanged without colours.
[[nodiscard]] std::string Styled(std::string_view text, Style style, Colours colours);

/// Returns kOn if `fd` is a terminal that is not dumb, and NO_COLOR is not set.
[[nodiscard]] Colours ColoursOf(int fd);

/// The output streams of a command.
struct Console {
  std::ostream& out;
  std::ostream& err;
  Colours colours = Colours::kOff;  ///< Whether `out` gets colours.

  /// Returns `text` in a style, for `out`.
  [[nodiscard]] std::string Paint(std::string_view text, Style style) const {
    return Styled(text, style, colours);
  }
};

/// Returns the console of the process.
[[nodiscard]] Console StandardConsole();

/// A cell of a table. Makes foreign text safe for a terminal.
struct Cell {
  // NOLINTBEGIN(google-explicit-constructor): rows are lists of texts.
  Cell(const std::string& cell_text, Style cell_style = Style::kPlain);
  Cell(const char* cell_text) : Cell(std::string(cell_text)) {}
  // NOLINTEND(google-explicit-constructor)

  std::string text;  ///< A result of Shown.
  Style style;
};

/// A table of aligned columns, with two blanks between them and no blanks at the ends of lines.
class Table {
 public:
  /// `heads` are separated by `|`, as in `RULE|>COUNT`; a column whose head begins with `>` is
  /// aligned to the right. If all heads are empty, no line of heads is printed.
  explicit Table(std::string_view heads);

  /// Adds a row; its missing cells are empty.
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  void Print(const Console& console, std::string_view indent = {}) const;

 private:
  struct Column {
    std::string head;
    bool right;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tidegate::cli

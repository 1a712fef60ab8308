// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>
#include <ostream>

#include "cli/shown_text.hpp"

namespace tidegate::cli {
namespace {

std::string Padded(const Cell& cell, std::size_t width, Align align, Colours colours) {
  const std::string blanks(width - WidthOf(cell.text), ' ');
  const std::string inked = Inked(cell.text, cell.ink, colours);
  return align == Align::kRight ? blanks + inked : inked + blanks;
}

}  // namespace

Cell::Cell(const std::string& cell_text, Ink cell_ink) : text(Shown(cell_text)), ink(cell_ink) {}

void Table::Print(const Console& console, std::string_view indent) const {
  std::vector<std::size_t> widths;
  std::vector<Cell> heads;
  bool headed = false;
  for (const Column& column : columns_) {
    widths.push_back(WidthOf(column.head));
    heads.emplace_back(column.head, Ink::kQuiet);
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
      if (i != 0) text += "  ";
      // The last one ends the line: nothing is filled up behind it.
      const bool ends = i + 1 == last && columns_[i].align == Align::kLeft;
      text += Padded(row[i], ends ? WidthOf(row[i].text) : widths[i], columns_[i].align,
                     console.colours);
    }
    console.out << text << '\n';
  };
  if (headed) line(heads);
  for (const auto& row : rows_) line(row);
}

}  // namespace tidegate::cli

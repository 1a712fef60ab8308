// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.hpp"

namespace tidegate::cli {

enum class Align : std::uint8_t { kLeft, kRight };

/// What stands in a table: foreign text is made fit for a terminal here.
struct Cell {
  // NOLINTBEGIN(google-explicit-constructor): rows are lists of texts.
  Cell(const std::string& cell_text, Ink cell_ink = Ink::kPlain);
  Cell(const char* cell_text) : Cell(std::string(cell_text)) {}
  // NOLINTEND(google-explicit-constructor)

  std::string text;  ///< Shown.
  Ink ink;
};

/// Rows of aligned columns, two blanks between them and none at the end of a line.
class Table {
 public:
  struct Column {
    std::string head;
    Align align = Align::kLeft;
  };
  /// Without any head, no line of heads is printed.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Cells that are left out are empty.
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  void Print(const Console& console, std::string_view indent = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tidegate::cli

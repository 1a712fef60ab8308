// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tidegate::cli {
namespace {

std::string Printed(const Table& table, Colours colours = Colours::kOff) {
  std::ostringstream out;
  std::ostringstream err;
  table.Print({out, err, colours});
  return out.str();
}

TEST(TableTest, AlignsByDisplayWidth) {
  Table table("NAME|>N|WHY");
  table.Add({"\u4e2d\u6587", "1", "x"});
  table.Add({"abcdef", "1,000"});
  EXPECT_EQ(Printed(table),
            "NAME        N  WHY\n"
            "\u4e2d\u6587        1  x\n"
            "abcdef  1,000\n");
}

TEST(TableTest, EscapesTextFromServerInCells) {
  Table table("|");
  table.Add({"a\nb", "\x1b[31mred"});
  EXPECT_EQ(Printed(table), "a\\nb  \\x1b[31mred\n");
}

TEST(TableTest, IgnoresColoursInWidths) {
  Table table("|");
  table.Add({Cell("a", Style::kBad), "b"});
  table.Add({"ccc", "d"});
  EXPECT_EQ(Printed(table), "a    b\nccc  d\n");
  EXPECT_EQ(Printed(table, Colours::kOn), "\x1b[31ma\x1b[0m    b\nccc  d\n");
}

}  // namespace
}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "base/ascii.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate {
namespace {

/// Compares every pair of bytes at every position of a text of 9 bytes, because the function
/// compares 8 bytes at a time and the rest one by one.
TEST(AsciiTest, EqualsIgnoreCaseFoldsAsciiLettersOnly) {
  for (std::size_t at = 0; at < 9; ++at) {
    for (int x = 0; x < 256; ++x) {
      for (int y = 0; y < 256; ++y) {
        std::string a = "abcdEFGHi";
        std::string b = "ABcdefgHI";
        a[at] = static_cast<char>(x);
        b[at] = static_cast<char>(y);
        ASSERT_EQ(EqualsIgnoreCase(a, b), Lower(a[at]) == Lower(b[at])) << x << ' ' << y;
      }
    }
  }
  EXPECT_FALSE(EqualsIgnoreCase("content-length", "content-lengt"));
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

namespace tidegate::cli {
namespace {

TEST(ShownTextTest, RecognizesUtf8) {
  for (const char* good : {"", "abc", "\u00e9", "\U0001F600", "\x1b"})
    EXPECT_TRUE(IsUtf8(good)) << good;
  for (const char* bad :
       {"\xff", "a\xc3", "\xc3(", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << Shown(bad);
  }
}

TEST(ShownTextTest, KeepsPrintableText) {
  for (const char* text : {"", "plain text ~", "Gr\u00fc\u00dfe", "\u4e2d\u6587", "a\\b"}) {
    EXPECT_EQ(Shown(text), text);
  }
}

TEST(ShownTextTest, EscapesControlCharacters) {
  EXPECT_EQ(Shown("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(Shown("line\nnext\ttab\r"), "line\\nnext\\ttab\\x0d");
  EXPECT_EQ(Shown("\x7f"), "\\x7f");
  // U+009B: control sequence introducer (CSI).
  EXPECT_EQ(Shown("\u009b2J"), "\\u{9b}2J");
  // U+202E: reverses the direction of the text.
  EXPECT_EQ(Shown("\u202egnp.exe"), "\\u{202e}gnp.exe");
  EXPECT_EQ(Shown("a\u200bb"), "a\\u{200b}b");  // U+200B: space without width.
  EXPECT_EQ(Shown(std::string_view("\0", 1)), "\\x00");
}

TEST(ShownTextTest, EscapesInvalidUtf8ByByte) {
  EXPECT_EQ(Shown("\xff"), "\\xff");
  EXPECT_EQ(Shown("\xc0\xaf"), "\\xc0\\xaf");           // Overlong UTF-8 encoding of `/`.
  EXPECT_EQ(Shown("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // UTF-8 encoding of a surrogate.
  EXPECT_EQ(Shown("\xe4\xb8"), "\\xe4\\xb8");           // Incomplete UTF-8 sequence.
  EXPECT_EQ(Shown("\x9b"), "\\x9b");
}

TEST(ShownTextTest, PrintsEveryByteAsPrintableText) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = Shown(text);
      EXPECT_TRUE(std::ranges::none_of(
          shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
          << first << " " << second;
      EXPECT_EQ(Shown(shown), shown) << first << " " << second;
    }
  }
}

TEST(ShownTextTest, EscapedJsonParsesToTheSameValue) {
  const std::string json = "{\"a\":\"x\u009b\x7f\u202e\u00fc\"}\n";
  const std::string shown = ShownJson(json);
  EXPECT_EQ(shown, "{\"a\":\"x\\u009b\\u007f\\u202e\u00fc\"}\n");
  EXPECT_EQ(boost::json::parse(shown), boost::json::parse(json));
}

TEST(ShownTextTest, CountsColumns) {
  EXPECT_EQ(WidthOf(""), 0u);
  EXPECT_EQ(WidthOf("abc"), 3u);
  EXPECT_EQ(WidthOf("\u00fc"), 1u);
  EXPECT_EQ(WidthOf("\u4e2d\u6587"), 4u);
}

TEST(ShownTextTest, ClipsByColumns) {
  EXPECT_EQ(Clipped("abcdef", 6), "abcdef");
  EXPECT_EQ(Clipped("abcdef", 5), "abc..");
  EXPECT_EQ(Clipped("abcdef", 3), "abc");
  EXPECT_EQ(Clipped("abcdef", 0), "");
  // A character that is two columns wide is not cut in half.
  EXPECT_EQ(Clipped("\u4e2d\u6587\u4e2d", 5), "\u4e2d..");
  EXPECT_EQ(Clipped("\u4e2d\u6587", 3), "\u4e2d");
}

}  // namespace
}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "rules/printable.hpp"

namespace tidegate {

std::string Printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::size_t kMost = 64;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[(c >> 4) & 15];
      out += kHex[c & 15];
    }
  }
  if (text.size() > kMost) out += "...";
  return out;
}

}  // namespace tidegate

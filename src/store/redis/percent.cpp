// SPDX-License-Identifier: Apache-2.0
#include "store/redis/percent.hpp"

#include <charconv>

namespace tidegate::redis {

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2 || byte == 0) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::string PercentEncode(std::string_view text, Slash slash) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const std::string_view special = slash == Slash::kPlain ? "%@:?#" : "%@:?#/";
  std::string encoded;
  for (const char c : text) {
    if (c > ' ' && c < 127 && special.find(c) == std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHex[byte >> 4];
    encoded += kHex[byte & 15];
  }
  return encoded;
}

}  // namespace tidegate::redis

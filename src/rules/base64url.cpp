// SPDX-License-Identifier: Apache-2.0
#include "rules/base64url.hpp"

#include <array>
#include <cstdint>

namespace tidegate {
namespace {

constexpr std::uint8_t kNone = 64;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::optional<std::string_view> DecodeBase64Url(std::string_view text,
                                                std::pmr::memory_resource& memory) {
  if (text.size() % 4 == 1) return std::nullopt;
  const std::size_t size = text.size() / 4 * 3 + text.size() % 4 * 3 / 4;
  char* const out = static_cast<char*>(memory.allocate(size + 1, 1));  // Never 0 bytes.
  char* end = out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone) return std::nullopt;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    *end++ = static_cast<char>(bits >> held & 0xff);
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return std::string_view(out, size);
}

}  // namespace tidegate

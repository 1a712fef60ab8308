// SPDX-License-Identifier: Apache-2.0
#include "store/redis/slot.hpp"

#include <array>

namespace tidegate::redis {
namespace {

/// What each byte does to the register of CRC-16/XMODEM.
constexpr std::array<std::uint16_t, 256> kTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000u) != 0 ? crc << 1 ^ 0x1021u : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc & 0xFFFFu);
  }
  return table;
}();

}  // namespace

Slot SlotOfTag(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char c : tag) {
    crc = (crc << 8 & 0xFFFFu) ^ kTable[(crc >> 8) ^ static_cast<unsigned char>(c)];
  }
  return static_cast<Slot>(crc % kSlots);
}

Slot SlotOfKey(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return SlotOfTag(key);
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return SlotOfTag(key);
  return SlotOfTag(key.substr(open + 1, close - open - 1));
}

}  // namespace tidegate::redis

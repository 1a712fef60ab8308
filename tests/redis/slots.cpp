// SPDX-License-Identifier: Apache-2.0
#include "redis/slots.hpp"

#include <vector>

#include "redis/redis_cluster.hpp"

namespace tidegate::redis_test {
namespace {

std::vector<std::string> AllTags() {
  std::vector<std::string> tags(RedisCluster::kSlots);
  int open = RedisCluster::kSlots;
  for (int i = 0; open > 0; ++i) {
    std::string text = std::to_string(i);
    std::string& tag = tags[static_cast<std::size_t>(SlotOfTag(text))];
    if (!tag.empty()) continue;
    tag = std::move(text);
    --open;
  }
  return tags;
}

}  // namespace

/// CRC16-CCITT (XModem), computed bit by bit; Redis Cluster uses it modulo 16384.
int SlotOfTag(std::string_view tag) {
  unsigned crc = 0;
  for (const char c : tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = ((crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U) & 0xFFFFU;
    }
  }
  return static_cast<int>(crc % RedisCluster::kSlots);
}

const std::string& TagOf(int slot) {
  static const std::vector<std::string> tags = AllTags();
  return tags[static_cast<std::size_t>(slot)];
}

}  // namespace tidegate::redis_test

// SPDX-License-Identifier: Apache-2.0
#include "store/redis/key_names.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "slot_of_key.hpp"

namespace tidegate::redis {
namespace {

/// Returns the CRC-16/XMODEM of a text, computed one bit at a time from its definition.
unsigned CrcByBits(std::string_view text) {
  unsigned crc = 0;
  for (const char c : text) {
    for (int bit = 7; bit >= 0; --bit) {
      const unsigned in = (static_cast<unsigned char>(c) >> bit & 1u) ^ (crc >> 15 & 1u);
      crc = (crc << 1 & 0xFFFFu) ^ (in != 0 ? 0x1021u : 0u);
    }
  }
  return crc;
}

TEST(RedisSlotTest, MatchesSlotsComputedByRedis) {
  ASSERT_EQ(CrcByBits("123456789"), 0x31C3u);
  EXPECT_EQ(SlotOfTag("123456789"), 0x31C3 % 16'384);
  EXPECT_EQ(SlotOfKey("123456789"), 0x31C3 % 16'384);
  EXPECT_EQ(SlotOfKey("foo"), 12'182);
  EXPECT_EQ(SlotOfKey("bar"), 5'061);
  EXPECT_EQ(SlotOfKey(""), 0);
}

TEST(RedisSlotTest, MatchesBitwiseCrcOfRandomKeys) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string key(random() % 60, '\0');
    for (char& c : key) c = static_cast<char>(random());
    ASSERT_EQ(SlotOfTag(key), CrcByBits(key) % 16'384) << i;
  }
}

TEST(RedisSlotTest, HashesTextInFirstBracesOfKey) {
  struct Case {
    std::string_view key;
    std::string_view hashed;
  };
  for (const auto& [key, hashed] : {Case{"{user1000}.following", "user1000"},
                                    {"{user1000}.followers", "user1000"},
                                    {"foo{}{bar}", "foo{}{bar}"},
                                    {"foo{{bar}}zap", "{bar"},
                                    {"foo{bar}{zap}", "bar"},
                                    {"foo{bar", "foo{bar"},
                                    {"foo}bar{", "foo}bar{"},
                                    {"}{a}", "a"},
                                    {"{", "{"},
                                    {"{}", "{}"},
                                    {"{}x", "{}x"},
                                    {"{a}", "a"}}) {
    EXPECT_EQ(SlotOfKey(key), CrcByBits(hashed) % 16'384) << key;
  }
}

TEST(RedisSlotTest, HashesWholeSlotTag) {
  EXPECT_EQ(SlotOfTag("a{b}c"), CrcByBits("a{b}c") % 16'384);
  EXPECT_NE(SlotOfTag("a{b}c"), SlotOfKey("a{b}c"));
}

}  // namespace
}  // namespace tidegate::redis

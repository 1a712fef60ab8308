// SPDX-License-Identifier: Apache-2.0
#include "store/redis/msgpack.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

TEST(MsgpackTest, RoundTripsIntegersAtEveryEncodingBoundary) {
  std::vector<std::int64_t> numbers;
  for (int bit = 0; bit < 54; ++bit) {
    for (const std::int64_t off : {-1, 0, 1}) {
      numbers.push_back((std::int64_t{1} << bit) + off);
      numbers.push_back(-(std::int64_t{1} << bit) + off);
    }
  }
  std::string packed;
  WritePacked(packed, numbers);
  std::vector<std::int64_t> read;
  ASSERT_TRUE(ReadPacked(packed, read));
  EXPECT_EQ(read, numbers);
}

TEST(MsgpackTest, ReadsArrayPackedByRedis) {
  using namespace std::string_view_literals;
  std::vector<std::int64_t> read;
  // The bytes are the result of cmsgpack.pack({1, 200, -1, 1e15, 1.0, -40, 300}) in Redis.
  ASSERT_TRUE(
      ReadPacked("\x97\x01\xcc\xc8\xff\xcf\x00\x03\x8d\x7e\xa4\xc6\x80\x00"
                 "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xd0\xd8\xcd\x01\x2c"sv,
                 read));
  EXPECT_EQ(read, (std::vector<std::int64_t>{1, 200, -1, 1'000'000'000'000'000, 1, -40, 300}));
  ASSERT_TRUE(ReadPacked("\x90"sv, read));
  EXPECT_TRUE(read.empty());
}

TEST(MsgpackTest, RejectsMalformedInput) {
  using namespace std::string_view_literals;
  std::vector<std::int64_t> read;
  const std::string_view bad[] = {
      ""sv,
      "\x01"sv,                                      // Not an array.
      "\x92\x01"sv,                                  // Truncated.
      "\x91\x01\x02"sv,                              // Surplus bytes behind the array.
      "\x91\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"sv,  // 1.5
      "\x91\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"sv,  // NaN
      "\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff"sv,  // An integer of more than 63 bits.
      "\x91\xa1x"sv,                                 // A string.
      "\x91\xc0"sv,                                  // Nil.
      "\xdd\xff\xff\xff\xff\x01"sv,                  // A size far above the number of bytes.
      "\xdc\x00"sv,
  };
  for (const std::string_view packed : bad) EXPECT_FALSE(ReadPacked(packed, read));
}

}  // namespace
}  // namespace tidegate::redis

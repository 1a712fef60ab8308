// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The part of msgpack that the scripts use: one array of integers. The tests have their own
/// implementation so that a mistake in the service's implementation is found.
namespace tidegate::redis_test {

inline void AppendBigEndian(std::string& to, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    to.push_back(static_cast<char>(value >> shift & 0xff));
  }
}

inline void PackOne(std::string& to, std::int64_t value) {
  if (value >= 0 && value < 128) {
    to.push_back(static_cast<char>(value));
  } else if (value >= 0 && value <= UINT32_MAX) {
    to.push_back('\xce');
    AppendBigEndian(to, static_cast<std::uint64_t>(value), 4);
  } else {
    to.push_back('\xd3');
    AppendBigEndian(to, static_cast<std::uint64_t>(value), 8);
  }
}

inline std::string PackHead(std::size_t size) {
  std::string packed = "\xdd";
  AppendBigEndian(packed, size, 4);
  return packed;
}

inline std::string Pack(std::span<const std::int64_t> values) {
  std::string packed = PackHead(values.size());
  for (const std::int64_t value : values) PackOne(packed, value);
  return packed;
}

/// Reads exactly one array of integers; returns nothing for any other text.
class Unpacker {
 public:
  explicit Unpacker(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::int64_t>> Array() {
    const auto head = static_cast<unsigned char>(Byte());
    std::uint64_t size = 0;
    if (head >= 0x90 && head <= 0x9f) {
      size = head & 0x0f;
    } else if (head == 0xdc) {
      size = BigEndian(2);
    } else if (head == 0xdd) {
      size = BigEndian(4);
    } else {
      return std::nullopt;
    }
    std::vector<std::int64_t> values;
    for (std::uint64_t i = 0; i < size && good_; ++i) values.push_back(Integer());
    if (!good_ || !text_.empty()) return std::nullopt;
    return values;
  }

 private:
  std::int64_t Integer() {
    const auto head = static_cast<unsigned char>(Byte());
    if (head < 0x80) return head;
    if (head >= 0xe0) return static_cast<std::int8_t>(head);
    switch (head) {
      case 0xcc: return static_cast<std::int64_t>(BigEndian(1));
      case 0xcd: return static_cast<std::int64_t>(BigEndian(2));
      case 0xce: return static_cast<std::int64_t>(BigEndian(4));
      case 0xcf:
      case 0xd3: return static_cast<std::int64_t>(BigEndian(8));
      case 0xd0: return static_cast<std::int8_t>(BigEndian(1));
      case 0xd1: return static_cast<std::int16_t>(BigEndian(2));
      case 0xd2: return static_cast<std::int32_t>(BigEndian(4));
      default: good_ = false; return 0;
    }
  }

  char Byte() {
    if (text_.empty()) {
      good_ = false;
      return 0;
    }
    const char first = text_.front();
    text_.remove_prefix(1);
    return first;
  }

  std::uint64_t BigEndian(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(Byte());
    return value;
  }

  std::string_view text_;
  bool good_ = true;
};

inline std::optional<std::vector<std::int64_t>> Unpack(std::string_view text) {
  return Unpacker(text).Array();
}

}  // namespace tidegate::redis_test

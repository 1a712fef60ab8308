// SPDX-License-Identifier: Apache-2.0
#include "store/redis/msgpack.hpp"

#include <bit>
#include <cmath>
#include <optional>

namespace tidegate::redis {
namespace {

/// Appends a tag and the low `bytes` of a number, the highest first.
void Append(std::string& out, unsigned char tag, std::uint64_t number, int bytes) {
  out.push_back(static_cast<char>(tag));
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(number >> shift));
  }
}

void AppendNumber(std::string& out, std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= -32 && number < 128) return out.push_back(static_cast<char>(number));
  if (number < 0) return Append(out, 0xd3, bits, 8);
  if (bits <= 0xff) return Append(out, 0xcc, bits, 1);
  if (bits <= 0xffff) return Append(out, 0xcd, bits, 2);
  if (bits <= 0xffff'ffff) return Append(out, 0xce, bits, 4);
  Append(out, 0xcf, bits, 8);
}

/// Reads values from the front of a text and removes them.
class Unpacker {
 public:
  explicit Unpacker(std::string_view packed) noexcept : rest_(packed) {}

  [[nodiscard]] bool done() const noexcept { return rest_.empty(); }

  [[nodiscard]] std::optional<std::uint64_t> Bytes(std::size_t count) noexcept {
    if (rest_.size() < count) return std::nullopt;
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < count; ++i) {
      number = number << 8 | static_cast<unsigned char>(rest_[i]);
    }
    rest_.remove_prefix(count);
    return number;
  }

  [[nodiscard]] std::optional<std::uint64_t> ArraySize() noexcept {
    const auto tag = Bytes(1);
    if (!tag) return std::nullopt;
    if ((*tag & 0xf0) == 0x90) return *tag & 0x0f;
    if (*tag == 0xdc) return Bytes(2);
    if (*tag == 0xdd) return Bytes(4);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::int64_t> Number() noexcept {
    const auto tag = Bytes(1);
    if (!tag) return std::nullopt;
    if (*tag < 0x80 || *tag >= 0xe0) return static_cast<std::int8_t>(*tag);
    if (*tag < 0xca || *tag > 0xd3) return std::nullopt;
    // 0xca float, 0xcb double, 0xcc to 0xcf unsigned, 0xd0 to 0xd3 signed.
    const std::size_t bytes = std::size_t{1} << (*tag & 3);
    const auto bits = Bytes(bytes);
    if (!bits) return std::nullopt;
    if (*tag >= 0xd0) {
      const auto unused = static_cast<int>(64 - 8 * bytes);
      return static_cast<std::int64_t>(*bits << unused) >> unused;
    }
    if (*tag >= 0xcc) {
      if (*bits > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<std::int64_t>(*bits);
    }
    const double number =
        bytes == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(*bits)))
                   : std::bit_cast<double>(*bits);
    constexpr double kMost = 9'007'199'254'740'992.0;  // 2^53
    if (!(std::fabs(number) <= kMost) || number != std::floor(number)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }

 private:
  std::string_view rest_;
};

}  // namespace

void WritePacked(std::string& out, const std::vector<std::int64_t>& numbers) {
  Append(out, 0xdd, numbers.size(), 4);
  for (const std::int64_t number : numbers) AppendNumber(out, number);
}

bool ReadPacked(std::string_view packed, std::vector<std::int64_t>& numbers) {
  numbers.clear();
  Unpacker unpacker(packed);
  const auto size = unpacker.ArraySize();
  if (!size || *size > packed.size()) return false;
  for (std::uint64_t i = 0; i < *size; ++i) {
    const auto number = unpacker.Number();
    if (!number) return false;
    numbers.push_back(*number);
  }
  return unpacker.done();
}

}  // namespace tidegate::redis

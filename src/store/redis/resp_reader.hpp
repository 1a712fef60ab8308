// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate::redis {

/// One reply, or one push, as Redis sends it.
struct Reply {
  enum class Type : std::uint8_t { kText, kError, kInteger, kNull, kArray, kPush };
  Type type = Type::kNull;
  std::int64_t integer = 0;
  std::string_view text;  ///< Of kText and kError; of a double or a big number too.
  std::vector<Reply>
      elements;  ///< Of arrays, sets and pushes; a map's are keys and values in turn.

  [[nodiscard]] bool is(Type wanted) const noexcept { return type == wanted; }
};

/// Bytes -> replies, RESP2 and RESP3. No I/O; what has come is kept until it is complete.
class RespReader {
 public:
  /// Larger ones are not ours: a batch's reply is a few KiB.
  static constexpr std::size_t kMostBytes = 16u << 20;
  static constexpr std::size_t kMostWithoutText = 64u << 10;
  static constexpr int kMostDepth = 8;

  enum class Progress : std::uint8_t { kReply, kMore, kGarbage };

  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// kReply: `reply` is the next one, its texts valid until the next call. kMore: there is none
  /// yet. kGarbage: this is not what Redis speaks; nothing can be read any more.
  [[nodiscard]] Progress Next(Reply& reply);
  void Clear() noexcept;

 private:
  [[nodiscard]] Progress Read(Reply& reply, int depth);
  [[nodiscard]] Progress ReadLine(std::string_view& line);
  [[nodiscard]] Progress ReadText(Reply& reply, std::string_view size);
  [[nodiscard]] Progress ReadElements(Reply& reply, std::string_view size, std::int64_t each,
                                      int depth);

  std::string buffer_;
  std::size_t taken_ = 0;   ///< Of the replies that were read.
  std::size_t at_ = 0;      ///< In the one that is being read.
  bool broken_ = false;     ///< There was garbage.
  std::size_t needed_ = 0;  ///< It cannot be complete with fewer bytes in the buffer.
};

}  // namespace tidegate::redis

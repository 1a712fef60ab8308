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

/// Bytes -> replies, RESP2 and RESP3. No I/O; what has come is kept until it is complete, and is
/// looked at once however it is cut: the slots of a torn cluster are some MiB in many pieces.
class RespReader {
 public:
  /// Larger ones are not ours: a batch's reply is a few KiB.
  static constexpr std::size_t kMostBytes = 16u << 20;
  /// In all depths together: 8,192 ranges of slots with three nodes each have a quarter of them.
  static constexpr std::size_t kMostElements = 1u << 20;
  static constexpr int kMostDepth = 8;

  enum class Progress : std::uint8_t { kReply, kMore, kGarbage };

  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// kReply: `reply` is the next one, its texts valid until the next call. kMore: there is none
  /// yet. kGarbage: this is not what Redis speaks; nothing can be read any more.
  [[nodiscard]] Progress Next(Reply& reply);
  void Clear() noexcept;

 private:
  /// Drops what was read.
  void Forget();
  /// Goes on from at_ to the reply's end. Of one without elements, `reply` is all there is.
  [[nodiscard]] Progress Scan(Reply& reply);
  /// REQUIRES: Scan() has found the reply complete.
  void Build(Reply& reply);
  /// One value, or the head of an array: then `elements` is how many follow.
  [[nodiscard]] Progress ReadOne(Reply& reply, std::size_t& elements, std::size_t depth);
  [[nodiscard]] Progress ReadLine(std::string_view& line);
  [[nodiscard]] Progress ReadText(Reply& reply, std::string_view size);
  [[nodiscard]] static Progress ReadCount(Reply& reply, std::string_view size, std::size_t each,
                                          std::size_t& elements, std::size_t depth);

  std::string buffer_;
  std::size_t taken_ = 0;          ///< Of the reply that was read.
  std::size_t at_ = 0;             ///< In the one that is being read.
  std::size_t elements_ = 0;       ///< That it has so far.
  std::vector<std::size_t> open_;  ///< What each array that is not complete still lacks.
  bool broken_ = false;            ///< There was garbage.
};

}  // namespace tidegate::redis

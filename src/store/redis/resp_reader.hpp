// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidegate/error.hpp"

namespace tidegate::redis {

/// A reply or a push of Redis.
struct Reply {
  enum class Type : std::uint8_t { kText, kError, kInteger, kNull, kArray, kPush };
  Type type = Type::kNull;
  std::int64_t integer = 0;
  std::string_view text;  ///< The text of kText and kError; a double or a big number is kText.
  std::vector<Reply>
      elements;  ///< Those of an array, set or push; keys and values of a map in turn.

  [[nodiscard]] bool is(Type wanted) const noexcept { return type == wanted; }
};

/// Reads replies from bytes, RESP2 and RESP3, without I/O. It keeps the bytes of an incomplete
/// reply and reads each byte once, in whatever pieces they come: the slots of a fragmented cluster
/// are several MiB in many pieces.
class RespReader {
 public:
  /// The largest reply. That of a batch is a few KiB.
  static constexpr std::size_t kMostBytes = 16u << 20;
  /// The most elements of a reply with those of its elements. 8,192 ranges of slots with three
  /// nodes each have a quarter of them.
  static constexpr std::size_t kMostElements = 1u << 20;
  static constexpr int kMostDepth = 8;

  enum class Progress : std::uint8_t { kReply, kMore, kGarbage };

  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// kReply: `reply` is the next one, with texts that are valid until the next call. kMore: it is
  /// not complete yet. kGarbage: the bytes are not RESP, and nothing can be read any more until
  /// Clear.
  [[nodiscard]] Progress Next(Reply& reply);
  void Clear() noexcept;

 private:
  /// Drops the bytes of the last reply.
  void Forget();
  /// Continues from at_ to the end of the reply. Fills in a `reply` without elements.
  [[nodiscard]] Progress Scan(Reply& reply);
  /// Fills in `reply` with its elements. REQUIRES: Scan() has found it complete.
  void Build(Reply& reply);
  /// Reads a value, or the head of an array: then `elements` is how many follow.
  [[nodiscard]] Progress ReadOne(Reply& reply, std::size_t& elements, std::size_t depth);
  [[nodiscard]] Progress ReadLine(std::string_view& line);
  [[nodiscard]] Progress ReadText(Reply& reply, std::int64_t size);

  std::string buffer_;
  std::size_t taken_ = 0;          ///< The number of bytes of the reply that was returned.
  std::size_t at_ = 0;             ///< The position in the reply that is being read.
  std::size_t elements_ = 0;       ///< The number of its elements so far.
  std::vector<std::size_t> open_;  ///< How many elements each incomplete array lacks.
  bool broken_ = false;            ///< Next has returned kGarbage.
};

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tidegate {

/// HMAC-SHA-256 under one key, cut to 128 bits. The key's two blocks are hashed once, at
/// construction, so that a short value costs two compressions. Thread-safe.
class KeyedHash {
 public:
  using Digest = std::array<std::uint8_t, 16>;

  explicit KeyedHash(std::string_view key);
  ~KeyedHash();

  [[nodiscard]] Digest operator()(std::string_view value) const noexcept;

  /// The size of a digest's text: 22 characters of base64url, without padding.
  static constexpr std::size_t kTextSize = 22;
  static void WriteText(const Digest& digest, char* out) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidegate

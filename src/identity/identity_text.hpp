// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string_view>

#include "identity/address.hpp"
#include "identity/keyed_hash.hpp"
#include "identity/source.hpp"

namespace tidegate {

/// Writes an identity part by part, in the form that identity.hpp describes. Different identities
/// have different texts: a part ends at '&', its tag at the first '=', a hash begins with '~', and
/// none of these characters is unencoded in a name or value. No source has the tag `key` of inline
/// quotas.
class IdentityText {
 public:
  static constexpr std::size_t kMaxPlain = 128;
  static constexpr std::size_t kKeyBound = 4 + 1 + KeyedHash::kTextSize;

  /// Returns the maximum length of an identity of a rule.
  [[nodiscard]] static std::size_t Bound(const Per& per) noexcept;

  IdentityText(const KeyedHash& hash, std::size_t bound, std::pmr::memory_resource& memory)
      : hash_(hash), begin_(static_cast<char*>(memory.allocate(bound, 1))), end_(begin_) {}

  void Add(const Source& source, std::string_view value) noexcept;
  void Add(const Address& client) noexcept;
  void AddConst() noexcept;
  void AddKey(std::string_view key) noexcept;

  [[nodiscard]] std::string_view view() const noexcept {
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  void Begin(std::string_view kind) noexcept;
  void Literal(std::string_view text) noexcept;
  void Encoded(std::string_view text) noexcept;
  void Hashed(std::string_view text) noexcept;

  const KeyedHash& hash_;
  char* begin_;
  char* end_;
};

}  // namespace tidegate

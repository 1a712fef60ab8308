// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string_view>

#include "rules/address.hpp"
#include "rules/keyed_hash.hpp"
#include "rules/source.hpp"

namespace tidegate {

/// As Source::Text begins: `client_ip`, `header`, ...
[[nodiscard]] std::string_view KindName(Source::Kind kind) noexcept;

/// Writes an identity part by part, as rules/identity.hpp describes it. Why no two identities have
/// one text: a part ends at '&', its tag at the first '='; neither stands unencoded in a name or
/// value, and '~', which begins a hash, does not either. The kinds are a fixed list, and `key` of
/// inline quotas is not one of them.
class IdentityText {
 public:
  static constexpr std::size_t kMaxPlain = 128;
  static constexpr std::size_t kKeyBound = 4 + 1 + KeyedHash::kTextSize;

  /// How long the identity of a rule can get.
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

// SPDX-License-Identifier: Apache-2.0
#include "identity/identity_text.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"

namespace tidegate {
namespace {

/// The characters that are not encoded: printable ASCII except the characters that have a meaning
/// in an identity or a Redis key.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = '!'; c <= '~'; ++c) plain[c] = true;
  for (const char c : std::string_view("%&={}~")) plain[static_cast<unsigned char>(c)] = false;
  return plain;
}();

bool IsPlain(char c) noexcept { return kPlain[static_cast<unsigned char>(c)]; }

std::size_t EncodedSize(std::string_view text) noexcept {
  const auto plain = std::ranges::count_if(text, IsPlain);
  return 3 * text.size() - 2 * static_cast<std::size_t>(plain);
}

}  // namespace

std::size_t IdentityText::Bound(const Per& per) noexcept {
  constexpr std::size_t kAround = sizeof("&client_ip:=") + kMaxPlain;
  std::size_t bound = 0;
  for (const Per::Part& part : per.parts) {
    std::size_t longest = 0;
    for (const Source& source : part) longest = std::max(longest, source.name.size());
    bound += kAround + 3 * longest;
  }
  return bound;
}

void IdentityText::Add(const Source& source, std::string_view value) noexcept {
  Begin(Name(source.kind));
  if (!source.name.empty()) {
    *end_++ = ':';
    Encoded(source.name);
  }
  *end_++ = '=';
  // Encoding never shortens a value, so the encoded size of a long value need not be computed.
  if (source.IsSecret() || value.size() > kMaxPlain || EncodedSize(value) > kMaxPlain) {
    Hashed(value);
  } else {
    Encoded(value);
  }
}

void IdentityText::Add(const Address& client) noexcept {
  Begin("client_ip");
  *end_++ = '=';
  end_ += client.Write(end_);  // Digits, letters, dots and colons need no encoding.
}

void IdentityText::AddConst() noexcept { Begin("const"); }

void IdentityText::AddKey(std::string_view key) noexcept {
  Begin("key");
  *end_++ = '=';
  Hashed(key);
}

void IdentityText::Begin(std::string_view kind) noexcept {
  if (end_ != begin_) *end_++ = '&';
  Literal(kind);
}

void IdentityText::Literal(std::string_view text) noexcept {
  end_ = std::ranges::copy(text, end_).out;
}

void IdentityText::Encoded(std::string_view text) noexcept {
  for (const char c : text) {
    if (IsPlain(c)) {
      *end_++ = c;
    } else {
      end_ = WritePercentEncoded(end_, c);
    }
  }
}

void IdentityText::Hashed(std::string_view text) noexcept {
  *end_++ = '~';
  KeyedHash::WriteText(hash_(text), end_);
  end_ += KeyedHash::kTextSize;
}

}  // namespace tidegate

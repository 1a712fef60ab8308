// SPDX-License-Identifier: Apache-2.0
#include "rules/identity_text.hpp"

#include <algorithm>
#include <array>

namespace tidegate {
namespace {

/// What stands for itself: printable ASCII but for the characters that shape an identity or a
/// Redis key.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = '!'; c <= '~'; ++c) plain[c] = true;
  for (const char c : std::string_view("%&={}~")) plain[static_cast<unsigned char>(c)] = false;
  return plain;
}();

bool IsPlain(char c) noexcept { return kPlain[static_cast<unsigned char>(c)]; }

std::size_t EncodedSize(std::string_view text) noexcept {
  const auto plain = std::count_if(text.begin(), text.end(), IsPlain);
  return 3 * text.size() - 2 * static_cast<std::size_t>(plain);
}

}  // namespace

std::string_view KindName(Source::Kind kind) noexcept {
  switch (kind) {
    case Source::Kind::kClientIp:
      return "client_ip";
    case Source::Kind::kHeader:
      return "header";
    case Source::Kind::kCookie:
      return "cookie";
    case Source::Kind::kQuery:
      return "query";
    case Source::Kind::kPath:
      return "path";
    case Source::Kind::kRoute:
      return "route";
    case Source::Kind::kMethod:
      return "method";
    case Source::Kind::kHost:
      return "host";
    case Source::Kind::kJwt:
      return "jwt";
    case Source::Kind::kConst:
      return "const";
  }
  return "";
}

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
  Begin(KindName(source.kind));
  if (!source.name.empty()) {
    *end_++ = ':';
    Encoded(source.name);
  }
  *end_++ = '=';
  // A value of more than 128 bytes never encodes into fewer.
  if (source.IsSecret() || value.size() > kMaxPlain || EncodedSize(value) > kMaxPlain) {
    Hashed(value);
  } else {
    Encoded(value);
  }
}

void IdentityText::Add(const Address& client) noexcept {
  Begin("client_ip");
  *end_++ = '=';
  end_ += client.Write(end_);  // Digits, letters, dots and colons: nothing to encode.
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
  end_ = std::copy(text.begin(), text.end(), end_);
}

void IdentityText::Encoded(std::string_view text) noexcept {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    if (IsPlain(c)) {
      *end_++ = c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    *end_++ = '%';
    *end_++ = kHex[byte >> 4];
    *end_++ = kHex[byte & 15];
  }
}

void IdentityText::Hashed(std::string_view text) noexcept {
  *end_++ = '~';
  KeyedHash::WriteText(hash_(text), end_);
  end_ += KeyedHash::kTextSize;
}

}  // namespace tidegate

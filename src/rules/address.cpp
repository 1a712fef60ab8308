// SPDX-License-Identifier: Apache-2.0
#include "rules/address.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>

#include "rules/ascii.hpp"

namespace tidegate {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kGroups = 8;

/// A decimal number without sign or leading zeros, at most `max`.
std::optional<int> ParseNumber(std::string_view text, int max) noexcept {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number <= max ? std::optional(number) : std::nullopt;
}

bool ParseV4(std::string_view text, std::span<std::uint8_t, 4> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t dot = i == 3 ? text.size() : text.find('.');
    if (dot == std::string_view::npos) return false;
    const auto number = ParseNumber(text.substr(0, dot), 255);
    if (!number) return false;
    out[i] = static_cast<std::uint8_t>(*number);
    if (i < 3) text.remove_prefix(dot + 1);
  }
  return true;
}

/// One to four hexadecimal digits, taken off the front; -1 if there are none, or five.
int TakeGroup(std::string_view& text) noexcept {
  int group = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && HexDigit(text[digits]) >= 0; ++digits) {
    if (digits == 4) return -1;
    group = group * 16 + HexDigit(text[digits]);
  }
  text.remove_prefix(digits);
  return digits == 0 ? -1 : group;
}

/// Moves what stands right of "::" to the end. A "::" that stands for no group at all is refused,
/// as inet_pton does.
bool Spread(Address::Bytes& bytes, std::size_t filled, std::size_t gap) noexcept {
  if (filled == bytes.size()) return false;
  Address::Bytes spread{};
  std::copy_n(bytes.begin(), gap, spread.begin());
  std::copy_n(bytes.data() + gap, filled - gap, spread.data() + spread.size() - (filled - gap));
  bytes = spread;
  return true;
}

bool ParseV6(std::string_view text, Address::Bytes& bytes) noexcept {
  std::optional<std::size_t> gap;
  std::size_t filled = 0;
  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    if (filled == bytes.size()) return false;
    const std::string_view tail = text;
    const int group = TakeGroup(text);
    if (!text.empty() && text[0] == '.') {  // The last 32 bits may be dotted.
      if (filled > bytes.size() - 4) return false;
      if (!ParseV4(tail, std::span(bytes).subspan(filled).first<4>())) return false;
      filled += 4;
      break;
    }
    if (group < 0) return false;
    bytes[filled++] = static_cast<std::uint8_t>(group >> 8);
    bytes[filled++] = static_cast<std::uint8_t>(group & 0xff);
    if (text.empty()) break;
    if (text[0] != ':' || text.size() == 1) return false;
    text.remove_prefix(1);
    if (text[0] == ':') {
      if (gap) return false;
      gap = filled;
      text.remove_prefix(1);
    }
  }
  return gap ? Spread(bytes, filled, *gap) : filled == bytes.size();
}

struct Run {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// The first of the longest runs of two or more zero groups: what RFC 5952 writes as "::".
Run LongestZeros(std::span<const unsigned, kGroups> groups) noexcept {
  Run best;
  for (std::size_t i = 0; i < kGroups; ++i) {
    std::size_t end = i;
    while (end < kGroups && groups[end] == 0) ++end;
    if (end - i >= 2 && end - i > best.size) best = {i, end - i};
    i = std::max(i, end);
  }
  return best;
}

char* WriteV6(const Address::Bytes& bytes, char* out) noexcept {
  std::array<unsigned, kGroups> groups{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<unsigned>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  }
  const Run zeros = LongestZeros(groups);
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (zeros.size != 0 && i == zeros.begin) {
      *out++ = ':';
      *out++ = ':';
      i += zeros.size - 1;
      continue;
    }
    const bool after_gap = zeros.size != 0 && i == zeros.begin + zeros.size;
    if (i != 0 && !after_gap) *out++ = ':';
    out = std::to_chars(out, out + 4, groups[i], 16).ptr;
  }
  return out;
}

char* WriteV4(std::span<const std::uint8_t, 4> bytes, char* out) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0) *out++ = '.';
    out = std::to_chars(out, out + 3, bytes[i]).ptr;
  }
  return out;
}

std::unexpected<Error> RefuseAddress(std::string_view text, std::string_view why) {
  std::string message = "\"";
  message += text;
  message += "\" ";
  message += why;
  return std::unexpected(Error{ErrorCode::kBadQuota, std::move(message)});
}

}  // namespace

std::optional<Address> Address::Parse(std::string_view text) noexcept {
  Bytes bytes{};
  if (text.find(':') != std::string_view::npos) {
    if (!ParseV6(text, bytes)) return std::nullopt;
    return Address(bytes);
  }
  std::copy(kMapped.begin(), kMapped.end(), bytes.begin());
  if (!ParseV4(text, std::span(bytes).last<4>())) return std::nullopt;
  return Address(bytes);
}

std::optional<Address> Address::ParseWithPort(std::string_view text) noexcept {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (host.find(':') == std::string_view::npos) return std::nullopt;  // "[1.2.3.4]"
  } else if (text.find(':') == text.rfind(':')) {                       // One colon is no IPv6.
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  if (!port.empty() && (port[0] != ':' || !ParseNumber(port.substr(1), 65535))) return std::nullopt;
  return Parse(host);
}

bool Address::is_v4() const noexcept {
  return std::equal(kMapped.begin(), kMapped.end(), bytes_.begin());
}

Address Address::Masked(int bits) const noexcept {
  Address masked = *this;
  const auto kept = static_cast<unsigned>(std::clamp(bits, 0, 128));
  std::size_t i = kept / 8;
  if (i < masked.bytes_.size() && kept % 8 != 0) {
    masked.bytes_[i] = static_cast<std::uint8_t>(masked.bytes_[i] & (0xff00u >> (kept % 8)));
    ++i;
  }
  for (; i < masked.bytes_.size(); ++i) masked.bytes_[i] = 0;
  return masked;
}

Address Address::MaskedV6(int bits) const noexcept { return is_v4() ? *this : Masked(bits); }

bool Address::IsLoopback() const noexcept {
  if (is_v4()) return bytes_[12] == 127;
  Bytes one{};
  one.back() = 1;
  return bytes_ == one;
}

std::size_t Address::Write(char* out) const noexcept {
  char* const end = is_v4() ? WriteV4(std::span(bytes_).last<4>(), out) : WriteV6(bytes_, out);
  return static_cast<std::size_t>(end - out);
}

std::string Address::Text() const {
  std::array<char, kMaxText> text;
  return {text.data(), Write(text.data())};
}

Result<Network> Network::Parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const auto address = Address::Parse(host);
  if (!address) {
    return RefuseAddress(
        text, "is not an address or a network: write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32");
  }
  // As written: ::ffff:10.0.0.0 counts its prefix in 128 bits.
  const int shift = host.find(':') == std::string_view::npos ? kV4Bits : 0;
  int bits = 128;
  if (slash != std::string_view::npos) {
    const auto number = ParseNumber(text.substr(slash + 1), 128 - shift);
    if (!number) {
      return RefuseAddress(text, shift != 0
                                     ? "needs a prefix length from 0 to 32 after the slash"
                                     : "needs a prefix length from 0 to 128 after the slash");
    }
    bits = shift + *number;
  }
  const Network network(address->Masked(bits), bits);
  if (network.base_ != *address) {
    return RefuseAddress(text, "has bits beyond its prefix: did you mean " + network.Text() + "?");
  }
  return network;
}

std::string Network::Text() const {
  if (bits_ == 128) return base_.Text();
  return base_.Text() + "/" + std::to_string(base_.is_v4() ? bits_ - kV4Bits : bits_);
}

}  // namespace tidegate

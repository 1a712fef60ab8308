// SPDX-License-Identifier: Apache-2.0
#include "identity/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>

#include "base/failure.hpp"
#include "base/units.hpp"

namespace tidegate {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kGroups = 8;

/// Parses an address of `family` into `out`. glibc's parser is as strict as Parse requires.
bool ParseAs(int family, std::string_view text, std::uint8_t* out) noexcept {
  std::array<char, Address::kMaxText> copy;
  if (text.size() >= copy.size() || text.contains('\0')) return false;
  *std::ranges::copy(text, copy.begin()).out = '\0';
  return inet_pton(family, copy.data(), out) == 1;
}

/// Parses a decimal number of at most `max`, without leading zeros.
std::optional<int> ParseNoZeros(std::string_view text, int max) noexcept {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return ParseNumber(text, 0, max);
}

struct Run {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// Returns the first of the longest runs of two or more zero groups, which RFC 5952 writes as "::".
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

}  // namespace

std::optional<Address> Address::Parse(std::string_view text) noexcept {
  Bytes bytes{};
  if (text.contains(':')) {
    if (!ParseAs(AF_INET6, text, bytes.data())) return std::nullopt;
  } else {
    std::ranges::copy(kMapped, bytes.begin());
    if (!ParseAs(AF_INET, text, bytes.data() + kMapped.size())) return std::nullopt;
  }
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
    if (!host.contains(':')) return std::nullopt;  // "[1.2.3.4]"
  } else if (text.find(':') == text.rfind(':')) {  // IPv6 has two or more colons.
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  if (!port.empty() && (port[0] != ':' || !ParseNoZeros(port.substr(1), 65535)))
    return std::nullopt;
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
  const auto refuse = [text](const std::string& why) {
    return Failure(ErrorCode::kBadAddress, "\"" + std::string(text) + "\" " + why);
  };
  if (!address) {
    return refuse("is not an address or a network: write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32");
  }
  // The prefix of an IPv4 address counts 32 bits; that of ::ffff:10.0.0.0 counts 128 bits.
  const int shift = !host.contains(':') ? kV4Bits : 0;
  int bits = 128;
  if (slash != std::string_view::npos) {
    const auto number = ParseNoZeros(text.substr(slash + 1), 128 - shift);
    if (!number) {
      return refuse("needs a prefix length from 0 to " + std::to_string(128 - shift) +
                    " after the slash");
    }
    bits = shift + *number;
  }
  const Network network(address->Masked(bits), bits);
  if (network.base_ != *address) {
    return refuse("has bits beyond its prefix: did you mean " + network.Text() + "?");
  }
  return network;
}

std::string Network::Text() const {
  if (bits_ == 128) return base_.Text();
  return base_.Text() + "/" + std::to_string(base_.is_v4() ? bits_ - kV4Bits : bits_);
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tidegate/error.hpp"

namespace tidegate {

/// An IP address. IPv4 is stored in its IPv4-mapped IPv6 form (`::ffff:a.b.c.d`), so that a mapped
/// address and the plain one are the same value: no client is counted under two addresses.
class Address {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr Address() noexcept = default;  ///< `::`
  constexpr explicit Address(const Bytes& bytes) noexcept : bytes_(bytes) {}

  /// Parses exactly one address: without port, brackets, zone, white space, leading zeros in IPv4
  /// (some programs read "010.0.0.1" as octal) or shortened IPv4 ("127.1").
  [[nodiscard]] static std::optional<Address> Parse(std::string_view text) noexcept;
  /// Parses an address like Parse(), but also with a port and with brackets, as forwarding headers
  /// have them: `1.2.3.4:80`, `[2001:db8::1]`, `[2001:db8::1]:443`.
  [[nodiscard]] static std::optional<Address> ParseWithPort(std::string_view text) noexcept;

  [[nodiscard]] bool is_v4() const noexcept;
  /// Returns the 16 bytes as text, to hash and to store them.
  [[nodiscard]] std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  /// Returns the address with only the first `bits` of all 128 (IPv4 is the last 32).
  [[nodiscard]] Address Masked(int bits) const noexcept;
  /// Returns the address by which a client is counted: IPv6 masked to `bits`, IPv4 unchanged.
  [[nodiscard]] Address MaskedV6(int bits) const noexcept;
  [[nodiscard]] bool IsLoopback() const noexcept;

  /// Writes the address, dotted or as in RFC 5952. Returns its length, at most kMaxText.
  static constexpr std::size_t kMaxText = 46;
  std::size_t Write(char* out) const noexcept;
  [[nodiscard]] std::string Text() const;

  friend auto operator<=>(const Address&, const Address&) = default;

 private:
  Bytes bytes_{};
};

/// An address range: `10.0.0.0/8`, `2001:db8::/32`, or one address. IPv4 addresses are only in IPv4
/// ranges: who writes `::/0` means all of IPv6, and must not trust or exempt all of IPv4.
class Network {
 public:
  /// Parses a range. Bits set beyond the prefix are an Error ("10.0.0.1/8" for 10.0.0.0/8).
  [[nodiscard]] static Result<Network> Parse(std::string_view text);

  [[nodiscard]] bool Contains(const Address& address) const noexcept {
    return (bits_ >= kV4Bits || !address.is_v4()) && address.Masked(bits_) == base_;
  }
  [[nodiscard]] const Address& base() const noexcept { return base_; }
  [[nodiscard]] int bits() const noexcept { return bits_; }  ///< The prefix length, of 128 bits.
  [[nodiscard]] std::string Text() const;

  static constexpr int kV4Bits = 96;  ///< `bits` of `0.0.0.0/0`: the bits before an IPv4 address.

  friend bool operator==(const Network&, const Network&) = default;

 private:
  Network(const Address& base, int bits) noexcept : base_(base), bits_(bits) {}

  Address base_;
  int bits_ = 0;
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace tidegate::net {

/// Counts the open connections of each client address, and limits them. IPv6 addresses count by
/// their prefix, because one client can use all addresses of its network. Thread-safe.
class AddressCounts {
 public:
  /// 16 bytes, IPv4 mapped into IPv6.
  using Bytes = std::array<unsigned char, 16>;

  /// `most` connections per address; `ipv6_prefix` is 1 to 128.
  AddressCounts(std::size_t most, int ipv6_prefix);

  /// Counts a connection of `address`. Returns false, and counts nothing, if the address has `most`
  /// connections already.
  [[nodiscard]] bool Add(const Bytes& address);
  /// Ends a connection that Add counted.
  void Remove(const Bytes& address) noexcept;
  /// Number of addresses with open connections.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Hash {
    std::uint64_t seed;
    [[nodiscard]] std::size_t operator()(const Bytes& address) const noexcept;
  };
  [[nodiscard]] Bytes KeyOf(const Bytes& address) const noexcept;

  const std::size_t most_;
  const int ipv6_prefix_;
  mutable std::mutex mutex_;
  /// Seeded, so that an attacker cannot choose addresses that collide. Guarded by mutex_.
  std::unordered_map<Bytes, std::size_t, Hash> counts_;
};

}  // namespace tidegate::net

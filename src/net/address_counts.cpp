// SPDX-License-Identifier: Apache-2.0
#include "net/address_counts.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <random>

namespace tidegate::net {
namespace {

std::uint64_t RandomSeed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

bool IsMappedIpv4(const AddressCounts::Bytes& address) noexcept {
  return std::all_of(address.begin(), address.begin() + 10, [](auto byte) { return byte == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

}  // namespace

std::size_t AddressCounts::Hash::operator()(const Bytes& address) const noexcept {
  return XXH3_64bits_withSeed(address.data(), address.size(), seed);
}

AddressCounts::AddressCounts(std::size_t most, int ipv6_prefix)
    : most_(most), ipv6_prefix_(ipv6_prefix), counts_(0, Hash{RandomSeed()}) {}

AddressCounts::Bytes AddressCounts::KeyOf(const Bytes& address) const noexcept {
  if (IsMappedIpv4(address)) return address;
  Bytes key{};
  const auto whole = static_cast<std::size_t>(ipv6_prefix_ / 8);
  std::copy_n(address.begin(), whole, key.begin());
  if (const int bits = ipv6_prefix_ % 8; bits != 0) {
    key[whole] = static_cast<unsigned char>(address[whole] & (0xffu << (8 - bits)));
  }
  return key;
}

bool AddressCounts::Add(const Bytes& address) {
  const Bytes key = KeyOf(address);
  const std::lock_guard lock(mutex_);
  std::size_t& count = counts_[key];
  if (count >= most_) return false;
  ++count;
  return true;
}

void AddressCounts::Remove(const Bytes& address) noexcept {
  const Bytes key = KeyOf(address);
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(key);
  if (found != counts_.end() && --found->second == 0) counts_.erase(found);
}

std::size_t AddressCounts::size() const {
  const std::lock_guard lock(mutex_);
  return counts_.size();
}

}  // namespace tidegate::net

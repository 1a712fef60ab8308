// SPDX-License-Identifier: Apache-2.0
#include "net/listener.hpp"

#include <gtest/gtest.h>

namespace tidegate::net {
namespace {

AddressCounts::Bytes Ipv4(unsigned char last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last};
}
AddressCounts::Bytes Ipv6(unsigned char network, unsigned char host) {
  return {0x20, 1, 0x0d, 0xb8, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, host};
}

TEST(AddressCountsTest, LimitsEachAddressSeparately) {
  AddressCounts counts(2, 64);
  EXPECT_TRUE(counts.Add(Ipv4(1)));
  EXPECT_TRUE(counts.Add(Ipv4(1)));
  EXPECT_FALSE(counts.Add(Ipv4(1)));
  EXPECT_TRUE(counts.Add(Ipv4(2)));
  counts.Remove(Ipv4(1));
  EXPECT_TRUE(counts.Add(Ipv4(1)));
}

TEST(AddressCountsTest, CountsIpv6ByPrefixAndIpv4ByAddress) {
  AddressCounts by_64(1, 64);
  EXPECT_TRUE(by_64.Add(Ipv6(1, 1)));
  EXPECT_FALSE(by_64.Add(Ipv6(1, 2)));
  EXPECT_TRUE(by_64.Add(Ipv6(2, 1)));
  EXPECT_TRUE(by_64.Add(Ipv4(1)));
  EXPECT_TRUE(by_64.Add(Ipv4(2)));
  AddressCounts by_60(1, 60);  // A prefix that ends within a byte.
  EXPECT_TRUE(by_60.Add(Ipv6(0x10, 1)));
  EXPECT_FALSE(by_60.Add(Ipv6(0x1f, 1)));
  EXPECT_TRUE(by_60.Add(Ipv6(0x20, 1)));
  AddressCounts whole(1, 128);
  EXPECT_TRUE(whole.Add(Ipv6(1, 1)));
  EXPECT_TRUE(whole.Add(Ipv6(1, 2)));
}

TEST(AddressCountsTest, ForgetsAddressesWithoutConnections) {
  AddressCounts counts(3, 64);
  for (int round = 0; round < 100; ++round) {
    EXPECT_TRUE(counts.Add(Ipv4(static_cast<unsigned char>(round))));
    counts.Remove(Ipv4(static_cast<unsigned char>(round)));
  }
  EXPECT_EQ(counts.size(), 0u);
  counts.Remove(Ipv4(1));  // Removes a connection of an address that has none.
  EXPECT_EQ(counts.size(), 0u);
}

}  // namespace
}  // namespace tidegate::net

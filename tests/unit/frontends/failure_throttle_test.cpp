// SPDX-License-Identifier: Apache-2.0
#include "frontends/auth_failures.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate {
namespace {

using namespace std::chrono_literals;

constexpr FailureThrottle::Clock::time_point kNow{std::chrono::hours{1}};

Address At(std::string_view text) { return Address::Parse(text).value(); }

/// Uses up the limit of an address.
void Exhaust(FailureThrottle& throttle, const Address& address) {
  for (int i = 0; i < FailureThrottle::kBurst; ++i) {
    ASSERT_EQ(throttle.Add(address, kNow), std::nullopt) << i;
  }
  ASSERT_NE(throttle.Add(address, kNow), std::nullopt);
}

TEST(FailureThrottleTest, AllowsBurstAndThenOneAttemptPerSecond) {
  FailureThrottle throttle(1);
  const Address client = At("192.0.2.1");
  Exhaust(throttle, client);
  EXPECT_EQ(throttle.Add(client, kNow), 1s);
  EXPECT_EQ(throttle.Add(client, kNow + 400ms), 600ms);
  EXPECT_EQ(throttle.Add(client, kNow + 1s), std::nullopt);
  EXPECT_EQ(throttle.Add(client, kNow + 1s), 1s) << "an attempt beyond the limit was counted";
  for (int i = 0; i < FailureThrottle::kBurst; ++i) {
    EXPECT_EQ(throttle.Add(client, kNow + 1h), std::nullopt) << "the limit did not recover";
  }
}

TEST(FailureThrottleTest, CountsIPv6ByNetwork) {
  FailureThrottle throttle(1);
  Exhaust(throttle, At("2001:db8:0:1::1"));
  EXPECT_NE(throttle.Add(At("2001:db8:0:1:ffff::9"), kNow), std::nullopt);
  EXPECT_EQ(throttle.Add(At("2001:db8:0:2::1"), kNow), std::nullopt);
}

TEST(FailureThrottleTest, CountsEachIPv4AddressSeparately) {
  FailureThrottle throttle(1);
  Exhaust(throttle, At("192.0.2.1"));
  EXPECT_NE(throttle.Add(At("::ffff:192.0.2.1"), kNow), std::nullopt);
  EXPECT_EQ(throttle.Add(At("192.0.2.2"), kNow), std::nullopt);
}

TEST(FailureThrottleTest, KeepsAddressesWithMostFailuresWhenTableIsFull) {
  FailureThrottle throttle(1);
  const Address client = At("192.0.2.1");
  Exhaust(throttle, client);
  // Adds one failure for each of four times as many addresses as the table has entries.
  for (std::size_t i = 0; i < 4 * FailureThrottle::kEntries; ++i) {
    const std::string text = "10." + std::to_string(i >> 16) + "." +
                             std::to_string((i >> 8) & 255) + "." + std::to_string(i & 255);
    ASSERT_EQ(throttle.Add(At(text), kNow), std::nullopt);
  }
  EXPECT_NE(throttle.Add(client, kNow), std::nullopt);
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "identity/address.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tidegate {
namespace {

using testing::HasSubstr;

Address Of(std::string_view text) {
  const auto address = Address::Parse(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(Address());
}

Network NetworkOf(std::string_view text) {
  const auto network = Network::Parse(text);
  EXPECT_TRUE(network) << text << ": " << (network ? "" : network.error().message);
  return network.value();
}

TEST(AddressTest, PrintsCanonicalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"203.0.113.7", "203.0.113.7"},
      {"0.0.0.0", "0.0.0.0"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"2001:DB8::A", "2001:db8::a"},
      {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
      {"0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
      {"1:2:3:4:5:6:77.77.88.88", "1:2:3:4:5:6:4d4d:5858"},
      {"::ffff:1.2.3.4", "1.2.3.4"},
      {"::FFFF:0102:0304", "1.2.3.4"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& [in, out] : cases) EXPECT_EQ(Of(in).Text(), out) << in;
}

TEST(AddressTest, RejectsInvalidAddresses) {
  for (const char* text : {"",
                           " ",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "010.0.0.1",
                           "1.2.3.04",
                           "127.1",
                           "0x7f.0.0.1",
                           "1.2.3.4 ",
                           " 1.2.3.4",
                           "1.2.3.4:80",
                           "+1.2.3.4",
                           "1.2.3.-4",
                           "1..3.4",
                           ".1.2.3",
                           "1.2.3.",
                           "1.2.3.4\n",
                           "16909060",
                           ":",
                           ":::",
                           "1::2::3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "12345::",
                           "g::",
                           "::1%eth0",
                           "[::1]",
                           "::1/64",
                           ":1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:",
                           "1::2:",
                           "::1.2.3",
                           "::1.2.3.4.5",
                           "::1.2.3.4:5",
                           "::1.2.3.256",
                           "::ffff:01.2.3.4",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "::.1.2.3",
                           "unknown"}) {
    EXPECT_FALSE(Address::Parse(text)) << text;
  }
  EXPECT_FALSE(Address::Parse(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(Address::Parse(std::string(10'000, ':')));
}

TEST(AddressTest, AgreesWithInetPtonOnRandomText) {
  std::mt19937_64 random(7);
  constexpr std::string_view kBytes = "0123456789abfF:.:.::%";
  int good = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = i % 3 == 0   ? "::ffff:1.2.3.4"
                       : i % 3 == 1 ? "1:2:3:4:5:6:7:8"
                                    : "10.20.30.40";
    for (std::uint64_t n = random() % 5; n-- > 0;) {
      const std::size_t at = random() % (text.size() + 1);
      const char c = kBytes[random() % kBytes.size()];
      if (random() % 2 == 0)
        text.insert(at, 1, c);
      else if (at < text.size())
        text[at] = c;
      if (random() % 3 == 0 && !text.empty()) text.erase(random() % text.size(), 1);
    }
    std::array<std::uint8_t, 16> v6{};
    std::array<std::uint8_t, 4> v4{};
    const bool known = inet_pton(AF_INET6, text.c_str(), v6.data()) == 1 ||
                       inet_pton(AF_INET, text.c_str(), v4.data()) == 1;
    const auto ours = Address::Parse(text);
    ASSERT_EQ(ours.has_value(), known) << text;
    if (!ours) continue;
    ++good;
    ASSERT_EQ(Address::Parse(ours->Text()), ours) << text;
    if (text.find(':') != std::string::npos) {
      ASSERT_EQ(*ours, Address(v6)) << text;
    }
  }
  EXPECT_GT(good, 10'000);
}

TEST(AddressTest, MappedAddressEqualsPlainIPv4) {
  EXPECT_EQ(Of("::ffff:1.2.3.4"), Of("1.2.3.4"));
  EXPECT_TRUE(Of("::ffff:1.2.3.4").is_v4());
  EXPECT_EQ(Of("::ffff:1.2.3.4").MaskedV6(64), Of("1.2.3.4"));
  EXPECT_FALSE(Of("::1.2.3.4").is_v4());
  EXPECT_FALSE(Of("::fffe:1.2.3.4").is_v4());
}

TEST(AddressTest, ParseWithPortReadsPortsAndBrackets) {
  for (const char* text : {"1.2.3.4", "1.2.3.4:80", "1.2.3.4:0", "1.2.3.4:65535",
                           "[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]:443", "::ffff:1.2.3.4"}) {
    EXPECT_EQ(Address::ParseWithPort(text), Of("1.2.3.4")) << text;
  }
  EXPECT_EQ(Address::ParseWithPort("2001:db8::1"), Of("2001:db8::1"));
  EXPECT_EQ(Address::ParseWithPort("[2001:db8::1]:443"), Of("2001:db8::1"));
  for (const char* text : {"",
                           ":",
                           ":80",
                           "1.2.3.4:",
                           "1.2.3.4:x",
                           "1.2.3.4:65536",
                           "1.2.3.4:080",
                           "1.2.3.4:-1",
                           "1.2.3.4:80:80",
                           "[1.2.3.4]",
                           "[1.2.3.4]:80",
                           "[::1",
                           "::1]",
                           "[]",
                           "[::1]x",
                           "[::1]:",
                           "[::1]80",
                           "[[::1]]",
                           "[::1]:99999",
                           "host:80",
                           "unknown",
                           "_hidden"}) {
    EXPECT_FALSE(Address::ParseWithPort(text)) << text;
  }
}

TEST(AddressTest, MaskKeepsTheFirstBits) {
  const Address all = Of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_EQ(all.Masked(0), Of("::"));
  EXPECT_EQ(all.Masked(1), Of("8000::"));
  EXPECT_EQ(all.Masked(8), Of("ff00::"));
  EXPECT_EQ(all.Masked(57), Of("ffff:ffff:ffff:ff80::"));
  EXPECT_EQ(all.Masked(64), Of("ffff:ffff:ffff:ffff::"));
  EXPECT_EQ(all.Masked(127), Of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"));
  EXPECT_EQ(all.Masked(128), all);
  EXPECT_EQ(all.Masked(-1), Of("::"));
  EXPECT_EQ(all.Masked(1000), all);
}

TEST(AddressTest, MaskMakesAddressesOfOneSlash64Equal) {
  const Address masked = Of("2001:db8:1:2::").MaskedV6(64);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    Address::Bytes bytes{};
    std::ranges::copy(masked.bytes(), bytes.begin());
    for (std::size_t b = 8; b < 16; ++b) bytes[b] = static_cast<std::uint8_t>(random());
    EXPECT_EQ(Address(bytes).MaskedV6(64), masked);
  }
  EXPECT_NE(Of("2001:db8:1:3::").MaskedV6(64), masked);
}

TEST(AddressTest, RecognizesLoopbackAddresses) {
  for (const char* text : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(Of(text).IsLoopback()) << text;
  }
  for (const char* text : {"128.0.0.1", "::", "::2", "2001:db8::1", "0.0.0.1"}) {
    EXPECT_FALSE(Of(text).IsLoopback()) << text;
  }
}

TEST(NetworkTest, ParsesAndPrintsCanonicalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.0.0/8", "10.0.0.0/8"},
      {"192.0.2.7", "192.0.2.7"},
      {"192.0.2.7/32", "192.0.2.7"},
      {"0.0.0.0/0", "0.0.0.0/0"},
      {"2001:db8::/32", "2001:db8::/32"},
      {"2001:db8::1", "2001:db8::1"},
      {"::/0", "::/0"},
      {"::ffff:10.0.0.0/104", "10.0.0.0/8"},
  };
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(NetworkOf(in).Text(), out) << in;
    EXPECT_EQ(NetworkOf(out), NetworkOf(in)) << in;
  }
}

TEST(NetworkTest, RejectsInvalidNetworksWithHint) {
  const auto beyond = Network::Parse("10.0.0.1/8");
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, HasSubstr("did you mean 10.0.0.0/8?"));
  EXPECT_THAT(Network::Parse("2001:db8::1/32").error().message, HasSubstr("2001:db8::/32"));
  for (const char* text : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0/8/8",
                           "::/129", "10.0.0.0/8 ", "::/99999999999"}) {
    const auto network = Network::Parse(text);
    ASSERT_FALSE(network) << text;
    EXPECT_THAT(network.error().message, HasSubstr("prefix length")) << text;
  }
  for (const char* text : {"", "/8", "10.0.0/8", "example.com", "10.0.0.0-10.0.0.9"}) {
    const auto network = Network::Parse(text);
    ASSERT_FALSE(network) << text;
    EXPECT_THAT(network.error().message, HasSubstr("write 192.0.2.7")) << text;
  }
}

TEST(NetworkTest, ContainsItsAddresses) {
  EXPECT_TRUE(NetworkOf("10.0.0.0/8").Contains(Of("10.255.255.255")));
  EXPECT_FALSE(NetworkOf("10.0.0.0/8").Contains(Of("11.0.0.0")));
  EXPECT_TRUE(NetworkOf("10.0.0.0/8").Contains(Of("::ffff:10.1.2.3")));
  EXPECT_TRUE(NetworkOf("2001:db8::/33").Contains(Of("2001:db8:7fff::1")));
  EXPECT_FALSE(NetworkOf("2001:db8::/33").Contains(Of("2001:db8:8000::1")));
  EXPECT_TRUE(NetworkOf("0.0.0.0/0").Contains(Of("203.0.113.7")));
  EXPECT_FALSE(NetworkOf("0.0.0.0/0").Contains(Of("2001:db8::1")));
}

TEST(NetworkTest, IPv6NetworksExcludeIPv4Addresses) {
  EXPECT_TRUE(NetworkOf("::/0").Contains(Of("2001:db8::1")));
  EXPECT_FALSE(NetworkOf("::/0").Contains(Of("203.0.113.7")));
  EXPECT_FALSE(NetworkOf("::/64").Contains(Of("203.0.113.7")));
}

}  // namespace
}  // namespace tidegate

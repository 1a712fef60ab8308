// SPDX-License-Identifier: Apache-2.0
#include "identity/client_address.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidegate {
namespace {

using Header = ClientAddressPolicy::Header;

/// A policy that trusts 10.0.0.0/8 and fd00::/8, and a request from a peer in one of these
/// networks.
class ClientAddressTest : public testing::Test {
 protected:
  ClientAddressTest() {
    policy_.trusted_proxies = {Network::Parse("10.0.0.0/8").value(),
                               Network::Parse("fd00::/8").value()};
  }

  std::string Client(std::vector<HeaderField> headers, std::string_view peer = "10.0.0.1") const {
    return ClientAddress(policy_, Address::Parse(peer).value(), headers).Text();
  }
  std::string XForwardedFor(std::string_view line) const {
    return Client({{"X-Forwarded-For", line}});
  }
  std::string Forwarded(std::string_view line) {
    policy_.header = Header::kForwarded;
    return Client({{"Forwarded", line}});
  }

  ClientAddressPolicy policy_;
};

TEST_F(ClientAddressTest, IgnoresAllHeadersByDefault) {
  policy_ = {};
  EXPECT_EQ(Client({{"X-Forwarded-For", "1.1.1.1"}, {"Forwarded", "for=1.1.1.1"}}), "10.0.0.1");
}

TEST_F(ClientAddressTest, UsesPeerWhenItIsUntrusted) {
  EXPECT_EQ(Client({{"X-Forwarded-For", "1.1.1.1"},
                    {"Forwarded", "for=1.1.1.1"},
                    {"X-Real-IP", "1.1.1.1"},
                    {"X_Forwarded_For", "1.1.1.1"}},
                   "203.0.113.7"),
            "203.0.113.7");
  policy_.hops = 1;
  EXPECT_EQ(Client({{"X-Forwarded-For", "1.1.1.1"}}, "203.0.113.7"), "203.0.113.7");
}

TEST_F(ClientAddressTest, SkipsTrustedProxiesFromTheRight) {
  EXPECT_EQ(XForwardedFor("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(XForwardedFor("6.6.6.6, 203.0.113.7, 10.0.0.2"), "203.0.113.7");
  EXPECT_EQ(XForwardedFor("6.6.6.6,203.0.113.7\t,  10.0.0.2,10.0.0.3"), "203.0.113.7");
  EXPECT_EQ(XForwardedFor("10.9.9.9, 203.0.113.7"), "203.0.113.7");
}

TEST_F(ClientAddressTest, JoinsHeaderLinesInOrder) {
  EXPECT_EQ(Client({{"X-Forwarded-For", "6.6.6.6"},
                    {"Host", "a"},
                    {"x-forwarded-for", "203.0.113.7"},
                    {"X-FORWARDED-FOR", "10.0.0.3, 10.0.0.2"}}),
            "203.0.113.7");
  EXPECT_EQ(Client({{"X-Forwarded-For", "203.0.113.7, 10.0.0.2"}, {"X-Forwarded-For", "10.0.0.3"}}),
            "203.0.113.7");
}

TEST_F(ClientAddressTest, UsesLeftmostAddressWhenAllAreTrusted) {
  EXPECT_EQ(XForwardedFor("10.0.0.4, 10.0.0.3, 10.0.0.2"), "10.0.0.4");
  EXPECT_EQ(Client({{"X-Forwarded-For", "10.0.0.5"}, {"X-Forwarded-For", "fd00::1"}}), "10.0.0.5");
}

TEST_F(ClientAddressTest, UsesPeerWhenHeaderIsMissing) {
  EXPECT_EQ(Client({}), "10.0.0.1");
  EXPECT_EQ(Client({{"X-Real-IP", "1.1.1.1"}, {"Forwarded", "for=1.1.1.1"}}), "10.0.0.1");
}

TEST_F(ClientAddressTest, NeverReadsUnderscoreSpellings) {
  EXPECT_EQ(Client({{"X_Forwarded_For", "1.1.1.1"}, {"X-Forwarded_For", "1.1.1.1"}}), "10.0.0.1");
  EXPECT_EQ(Client({{"X-Forwarded-For", "203.0.113.7"}, {"x_forwarded_for", "1.1.1.1"}}),
            "203.0.113.7");
}

TEST_F(ClientAddressTest, UsesLastValidAddressBeforeInvalidEntry) {
  for (const char* junk :
       {"unknown", "_hidden", "localhost", "1.2.3", "010.0.0.1", "1.2.3.4.5", "::1::", "1.2.3.4;",
        "\"1.2.3.4\"", "for=1.2.3.4", "\x01\xff", "[1.2.3.4]", "1.2.3.4:99999", "-", "10.0.0.0/8",
        "::ffff:1.2.3.4%eth0"}) {
    const std::string text(junk);
    EXPECT_EQ(XForwardedFor(text), "10.0.0.1") << junk;
    EXPECT_EQ(XForwardedFor("6.6.6.6, " + text), "10.0.0.1") << junk;
    EXPECT_EQ(XForwardedFor("6.6.6.6, " + text + ", 10.0.0.2"), "10.0.0.2") << junk;
    EXPECT_EQ(XForwardedFor(text + ", 203.0.113.7, 10.0.0.2"), "203.0.113.7") << junk;
    EXPECT_EQ(Client({{"X-Forwarded-For", "6.6.6.6"},
                      {"X-Forwarded-For", text},
                      {"X-Forwarded-For", "10.0.0.2"}}),
              "10.0.0.2")
        << junk;
  }
}

TEST_F(ClientAddressTest, TreatsEntryWithNulByteAsInvalid) {
  EXPECT_EQ(XForwardedFor(std::string_view("6.6.6.6, 1.1.1.1\0, 10.0.0.2", 27)), "10.0.0.2");
}

TEST_F(ClientAddressTest, StripsPortsBracketsAndIPv4Mapping) {
  EXPECT_EQ(XForwardedFor("203.0.113.7:4711, 10.0.0.2:80"), "203.0.113.7");
  EXPECT_EQ(XForwardedFor("[2001:db8::7]:4711, [fd00::2]:80"), "2001:db8::7");
  EXPECT_EQ(XForwardedFor("[2001:DB8::7]"), "2001:db8::7");
  EXPECT_EQ(XForwardedFor("::ffff:203.0.113.7, ::ffff:10.0.0.2"), "203.0.113.7");
  EXPECT_EQ(Client({{"X-Forwarded-For", "203.0.113.7"}}, "::ffff:10.0.0.1"), "203.0.113.7");
}

TEST_F(ClientAddressTest, HopsSelectNthEntryFromTheRight) {
  policy_.hops = 2;
  EXPECT_EQ(XForwardedFor("6.6.6.6, 203.0.113.7, 198.51.100.1"), "203.0.113.7");
  EXPECT_EQ(Client({{"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", "198.51.100.1"}}),
            "203.0.113.7");
  EXPECT_EQ(XForwardedFor("10.0.0.9, 10.0.0.2"), "10.0.0.9");
  policy_.hops = 1;
  EXPECT_EQ(XForwardedFor("6.6.6.6, 203.0.113.7, 198.51.100.1"), "198.51.100.1");
}

TEST_F(ClientAddressTest, UsesPeerWhenHopsAreMissing) {
  policy_.hops = 3;
  EXPECT_EQ(XForwardedFor("6.6.6.6, 203.0.113.7"), "10.0.0.1");
  EXPECT_EQ(Client({}), "10.0.0.1");
}

TEST_F(ClientAddressTest, UsesLastValidAddressWhenEntryAtHopIsInvalid) {
  policy_.hops = 2;
  EXPECT_EQ(XForwardedFor("6.6.6.6, unknown, 198.51.100.1"), "198.51.100.1");
  EXPECT_EQ(XForwardedFor("6.6.6.6, unknown, junk"), "10.0.0.1");
  EXPECT_EQ(XForwardedFor("203.0.113.7, unknown"), "203.0.113.7");
}

TEST_F(ClientAddressTest, ReadsEveryFormOfForParameterInForwardedHeader) {
  EXPECT_EQ(Forwarded("for=203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(Forwarded("For=\"203.0.113.7:4711\""), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=\"[2001:db8:cafe::17]:4711\""), "2001:db8:cafe::17");
  EXPECT_EQ(Forwarded("for=\"[2001:db8:cafe::17]\""), "2001:db8:cafe::17");
  EXPECT_EQ(Forwarded("for=203.0.113.7;proto=http;by=203.0.113.43"), "203.0.113.7");
  EXPECT_EQ(Forwarded("proto=http;by=\"a;for=6.6.6.6,b\" ; FOR = 203.0.113.7 "), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=6.6.6.6, for=203.0.113.7, for=10.0.0.2;proto=https"), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=\"20\\3.0.113.7\""), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=203.0.113.7;ext=\"\\\"; for=6.6.6.6\""), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=[2001:db8::1]:80"), "2001:db8::1");
}

TEST_F(ClientAddressTest, JoinsForwardedLinesAndIgnoresXForwardedFor) {
  policy_.header = Header::kForwarded;
  EXPECT_EQ(Client({{"Forwarded", "for=6.6.6.6, for=203.0.113.7"},
                    {"X-Forwarded-For", "1.1.1.1"},
                    {"forwarded", "for=10.0.0.2"}}),
            "203.0.113.7");
}

TEST_F(ClientAddressTest, UsesLastValidAddressBeforeInvalidForwardedEntry) {
  for (const char* junk :
       {"for=unknown", "for=_hidden", "for=\"_SEVKISEK\"", "for=", "for=\"\"", "proto=https",
        "by=1.1.1.1", "1.1.1.1", "for=1.1.1.1;for=1.1.1.2", "for=1.1.1.1;FOR=1.1.1.1",
        "for=\"1.1.1.1", "for=1.1.1.1\"", "for=\"1.1.1.1\\\"", "for=\"1.1.1.1\"x", "xfor=1.1.1.1",
        "for=\"[::1\"", "for=\"1.1.1.1 \""}) {
    const std::string text(junk);
    EXPECT_EQ(Forwarded("for=6.6.6.6, " + text + ", for=10.0.0.2"), "10.0.0.2") << junk;
    EXPECT_EQ(Forwarded(text + ", for=203.0.113.7, for=10.0.0.2"), "203.0.113.7") << junk;
  }
  EXPECT_EQ(Forwarded("for=\"" + std::string(5000, '1') + "\""), "10.0.0.1");
}

// A client's open quote must not hide the element that the proxy appended on the same line.
// Otherwise all clients that send one would be counted as the proxy.
TEST_F(ClientAddressTest, OpenQuoteOfClientDoesNotHideProxyEntry) {
  for (const char* sent :
       {"for=\"", "for=6.6.6.6;by=\"", "by=\"\\", "\"\"\"", "\\\"", "for=\"6.6"}) {
    EXPECT_EQ(Forwarded(std::string(sent) + ", for=203.0.113.7"), "203.0.113.7") << sent;
    EXPECT_EQ(Forwarded(std::string(sent) + ", for=\"[2001:db8::7]:80\""), "2001:db8::7") << sent;
  }
}

TEST_F(ClientAddressTest, HopsSelectNthForwardedEntry) {
  policy_.hops = 2;
  EXPECT_EQ(Forwarded("for=6.6.6.6, for=203.0.113.7, for=\"198.51.100.1:80\""), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=198.51.100.1"), "10.0.0.1");
  EXPECT_EQ(Forwarded("for=_x, for=198.51.100.1"), "198.51.100.1");
}

TEST_F(ClientAddressTest, FindsClientInVeryLongLists) {
  std::string line;
  for (int i = 0; i < 100'000; ++i) line += "10.0.0.9,";
  EXPECT_EQ(XForwardedFor(line + "203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(XForwardedFor("203.0.113.7," + line + "10.0.0.2"), "203.0.113.7");
}

// Some proxies leave a trailing comma. Without skipping empty entries, all clients of such a proxy
// would be counted as the proxy.
TEST_F(ClientAddressTest, SkipsEmptyEntries) {
  for (const char* line : {"203.0.113.7,", "203.0.113.7, ,,", "203.0.113.7,\t, 10.0.0.2",
                           "6.6.6.6,,203.0.113.7 ,", ",203.0.113.7,"}) {
    EXPECT_EQ(XForwardedFor(line), "203.0.113.7") << line;
  }
  EXPECT_EQ(XForwardedFor(", ,"), "10.0.0.1");
  EXPECT_EQ(Client({{"X-Forwarded-For", "203.0.113.7"}, {"X-Forwarded-For", ""}}), "203.0.113.7");
  EXPECT_EQ(Forwarded("for=203.0.113.7, ,"), "203.0.113.7");
  policy_.hops = 1;
  policy_.header = Header::kXForwardedFor;
  EXPECT_EQ(XForwardedFor("6.6.6.6, 203.0.113.7,"), "203.0.113.7");
}

}  // namespace
}  // namespace tidegate

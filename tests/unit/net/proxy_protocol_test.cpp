// SPDX-License-Identifier: Apache-2.0
#include "net/proxy_protocol.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>

namespace tidegate::net {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

const std::string kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::string_view kStrange = "the connection does not begin with a PROXY protocol header";

/// Parses `bytes` in a buffer of exactly their size, so that the address sanitizer finds reads
/// beyond its end.
ProxyHeader ParseExactly(std::string_view bytes) {
  const auto buffer = std::make_unique<char[]>(bytes.size());
  bytes.copy(buffer.get(), bytes.size());
  return ParseProxyHeader({buffer.get(), bytes.size()});
}

/// Parses `bytes` byte by byte and returns the first result other than kMore. Expects that more
/// bytes do not change it.
ProxyHeader Parse(std::string_view bytes) {
  ProxyHeader first;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const ProxyHeader now = ParseExactly(bytes.substr(0, size));
    if (first.parsed == Parsed::kMore) {
      first = now;
      continue;
    }
    EXPECT_EQ(now.parsed, first.parsed) << bytes;
    EXPECT_EQ(now.size, first.size) << bytes;
    EXPECT_EQ(now.problem, first.problem) << bytes;
    EXPECT_EQ(now.source.has_value(), first.source.has_value()) << bytes;
  }
  return first;
}

std::string Text(const std::optional<Peer>& peer) {
  if (!peer) return "the peer";
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, peer->bytes.data(), text, sizeof text);
  return text + " "s + std::to_string(peer->port);
}

/// Returns the client address that a complete header with some bytes behind it reports.
std::string Source(const std::string& header) {
  const ProxyHeader answer = Parse(header + "PROXY GET \r\n");
  EXPECT_EQ(answer.parsed, Parsed::kDone) << header << answer.problem;
  EXPECT_EQ(answer.size, header.size()) << header;
  for (std::size_t size = 0; size < header.size(); ++size) {
    EXPECT_EQ(ParseExactly(header.substr(0, size)).parsed, Parsed::kMore) << header << size;
  }
  return Text(answer.source);
}

std::string Problem(const std::string& bytes) {
  const ProxyHeader answer = Parse(bytes);
  EXPECT_EQ(answer.parsed, Parsed::kRefused) << bytes;
  EXPECT_FALSE(answer.problem.ends_with('.'));
  return std::string(answer.problem);
}

std::string Binary(int version_and_command, int family, const std::string& rest) {
  std::string header = kSignature;
  header += static_cast<char>(version_and_command);
  header += static_cast<char>(family);
  header += static_cast<char>(rest.size() >> 8);
  header += static_cast<char>(rest.size() & 0xff);
  return header + rest;
}

const std::string kV4 = "\xc0\x00\x02\x01\x0a\x00\x00\x02\xdc\x04\x01\xbb"s;
const std::string kV6 = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x01" +
                        std::string(16, '\x7f') + "\x00\x50\x01\xbb"s;

TEST(ProxyProtocolV1Test, ReadsClientAddress) {
  EXPECT_EQ(Source("PROXY TCP4 192.0.2.1 10.0.0.2 56324 443\r\n"), "::ffff:192.0.2.1 56324");
  EXPECT_EQ(Source("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"),
            "::ffff:255.255.255.255 65535");
  EXPECT_EQ(Source("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n"), "::ffff:0.0.0.0 0");
  EXPECT_EQ(Source("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), "2001:db8::1 1");
  EXPECT_EQ(Source("PROXY TCP6 2001:DB8:0:0:0:0:0:1 :: 1 2\r\n"), "2001:db8::1 1");
  EXPECT_EQ(Source("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n"), "::ffff:192.0.2.1 1");
  // The longest line with addresses: 104 bytes.
  const std::string ones = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  EXPECT_EQ(Source("PROXY TCP6 " + ones + " " + ones + " 65535 65535\r\n"), ones + " 65535");
}

TEST(ProxyProtocolV1Test, UsesPeerAddressForUnknown) {
  EXPECT_EQ(Source("PROXY UNKNOWN\r\n"), "the peer");
  EXPECT_EQ(Source("PROXY UNKNOWN \r\n"), "the peer");
  EXPECT_EQ(Source("PROXY UNKNOWN ffff::1 what ever 65535\r\n"), "the peer");
  // The longest valid line: 107 bytes.
  EXPECT_EQ(Source("PROXY UNKNOWN " + std::string(91, 'x') + "\r\n"), "the peer");
}

TEST(ProxyProtocolV1Test, RejectsMalformedLines) {
  for (const std::string_view words :
       {"TCP4 192.0.2.1 10.0.0.2 56324 443\n",          // CR is missing.
        "TCP4 192.0.2.1 10.0.0.2 56324 443\rx",         // LF is missing.
        "TCP4 192.0.2.1 10.0.0.2 56324 443 \r\n",       // A space at the end.
        "TCP4 192.0.2.1 10.0.0.2 56324\r\n",            // A port is missing.
        "TCP4 192.0.2.1 10.0.0.2 56324 \r\n",           //
        "TCP4  192.0.2.1 10.0.0.2 56324 443\r\n",       // Two spaces.
        "TCP4 192.0.2.1  10.0.0.2 56324 443\r\n",       //
        "TCP4 192.0.2.1\t10.0.0.2 56324 443\r\n",       // A tab.
        "TCP4 192.0.2.1 10.0.0.2 65536 443\r\n",        // Invalid ports.
        "TCP4 192.0.2.1 10.0.0.2 1 65536\r\n",          //
        "TCP4 192.0.2.1 10.0.0.2 99999 443\r\n",        //
        "TCP4 192.0.2.1 10.0.0.2 000001 443\r\n",       //
        "TCP4 192.0.2.1 10.0.0.2 080 443\r\n",          //
        "TCP4 192.0.2.1 10.0.0.2 00 443\r\n",           //
        "TCP4 192.0.2.1 10.0.0.2 -1 443\r\n",           //
        "TCP4 192.0.2.1 10.0.0.2 +1 443\r\n",           //
        "TCP4 192.0.2.1 10.0.0.2 0x1 443\r\n",          //
        "TCP4 192.0.2 10.0.0.2 1 443\r\n",              // Invalid addresses.
        "TCP4 192.0.2.256 10.0.0.2 1 443\r\n",          //
        "TCP4 192.0.02.1 10.0.0.2 1 443\r\n",           //
        "TCP4 192.0.2.1 10.0.0 1 443\r\n",              //
        "TCP4 1111.1111.1111.1111 10.0.0.2 1 443\r\n",  //
        "TCP4 ::1 ::1 1 443\r\n",                       // Addresses of the wrong family.
        "TCP4 192.0.2.1 ::1 1 443\r\n",                 //
        "TCP6 192.0.2.1 10.0.0.2 1 443\r\n",            //
        "TCP6 ::1 10.0.0.2 1 443\r\n",                  //
        "TCP6 ::1::1 ::1 1 443\r\n",                    //
        "TCP6 12345::1 ::1 1 443\r\n",                  //
        "TCP6 fe80::1%eth0 ::1 1 443\r\n",              //
        "TCP6 [::1] ::1 1 443\r\n"}) {
    EXPECT_THAT(Problem("PROXY " + std::string(words)), HasSubstr("two addresses")) << words;
  }
  EXPECT_THAT(Problem("PROXY TCP4 192.0.2.1\0 10.0.0.2 1 443\r\n"s), HasSubstr("two addresses"));
  for (const std::string_view family :
       {"TCP ", "TCP5 ", "tcp4 ", "UDP4 ", " TCP4 ", "UNKNOWM", "TCP4\r\n"}) {
    EXPECT_EQ(Problem("PROXY " + std::string(family) + "192.0.2.1 10.0.0.2 56324 443\r\n"),
              "the PROXY protocol header names neither TCP4 nor TCP6 nor UNKNOWN")
        << family;
  }
  EXPECT_EQ(Problem("PROXY UNKNOWNS\r\n"), kStrange);
  EXPECT_THAT(Problem("PROXY UNKNOWN x\nGET /"), HasSubstr("CRLF"));
  EXPECT_THAT(Problem("PROXY UNKNOWN x\rGET /"), HasSubstr("CRLF"));
}

TEST(ProxyProtocolV1Test, RejectsTooLongLines) {
  EXPECT_THAT(Problem("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n"), HasSubstr("107 bytes"));
  const std::string mapped = "0000:0000:0000:0000:0000:ffff:255.255.255.255";
  EXPECT_EQ(Source("PROXY TCP6 " + mapped + " ::1 1 2\r\n"), "::ffff:255.255.255.255 1");
  EXPECT_THAT(Problem("PROXY TCP6 " + mapped + " " + mapped + " 65535 65535\r\n"),
              HasSubstr("107 bytes"));
}

TEST(ProxyProtocolTest, RejectsFirstByteThatIsNotAHeader) {
  for (const std::string& bytes :
       {"GET "s, "POST /"s, "\x16\x03\x01\x02"s, "*1\r\n"s, "PING\r\n"s, "proxy TCP4"s, "PROXY\t"s,
        "PRI * HTTP/2.0\r\n"s, " PROXY"s, "\0"s, "\n"s, "\r\n\r\n\0\r\nQUIT\r"s, "\r\nGET"s}) {
    EXPECT_EQ(Problem(bytes), kStrange);
  }
  EXPECT_EQ(ParseExactly("G").parsed, Parsed::kRefused);
  EXPECT_EQ(ParseExactly("PROXI").parsed, Parsed::kRefused);
  EXPECT_EQ(ParseExactly("").parsed, Parsed::kMore);
}

TEST(ProxyProtocolV2Test, ReadsClientAddress) {
  EXPECT_EQ(Source(Binary(0x21, 0x11, kV4)), "::ffff:192.0.2.1 56324");
  EXPECT_EQ(Source(Binary(0x21, 0x21, kV6)), "2001:db8::1 80");
  // The parser skips what follows the addresses.
  EXPECT_EQ(Source(Binary(0x21, 0x11, kV4 + "\x04\x00\x02\xff\xff"s)), "::ffff:192.0.2.1 56324");
  EXPECT_EQ(Source(Binary(0x21, 0x21, kV6 + std::string(300, '\r'))), "2001:db8::1 80");
}

TEST(ProxyProtocolV2Test, UsesPeerAddressForLocalAndUnsupportedFamilies) {
  EXPECT_EQ(Source(Binary(0x20, 0x00, "")), "the peer");      // Command LOCAL.
  EXPECT_EQ(Source(Binary(0x20, 0x11, kV4)), "the peer");     // Command LOCAL.
  EXPECT_EQ(Source(Binary(0x20, 0xff, "x")), "the peer");     // Command LOCAL.
  EXPECT_EQ(Source(Binary(0x21, 0x00, "")), "the peer");      // Address family UNSPEC.
  EXPECT_EQ(Source(Binary(0x21, 0x01, "tail")), "the peer");  // Address family UNSPEC.
  // No transport protocol.
  EXPECT_EQ(Source(Binary(0x21, 0x10, kV4)), "the peer");
  // Datagrams, such as UDP.
  EXPECT_EQ(Source(Binary(0x21, 0x12, kV4)), "the peer");
  // Datagrams, such as UDP.
  EXPECT_EQ(Source(Binary(0x21, 0x22, kV6)), "the peer");
  // Unix sockets have no IP address.
  EXPECT_EQ(Source(Binary(0x21, 0x31, std::string(216, '/'))), "the peer");
  // Unix sockets have no IP address.
  EXPECT_EQ(Source(Binary(0x21, 0x32, std::string(220, '/'))), "the peer");
}

TEST(ProxyProtocolV2Test, RejectsInvalidHeaders) {
  for (const int version : {0x01, 0x11, 0x31, 0xf1}) {
    EXPECT_THAT(Problem(Binary(version, 0x11, kV4)), HasSubstr("another version"));
  }
  for (const int command : {0x22, 0x2f}) {
    EXPECT_THAT(Problem(Binary(command, 0x11, kV4)), HasSubstr("LOCAL and PROXY"));
  }
  for (const int family : {0x13, 0x1f, 0x41, 0xf0}) {
    EXPECT_THAT(Problem(Binary(0x21, family, kV4)), HasSubstr("family or transport"));
  }
  EXPECT_THAT(Problem(Binary(0x21, 0x11, kV4.substr(1))), HasSubstr("too short"));
  EXPECT_THAT(Problem(Binary(0x21, 0x11, "")), HasSubstr("too short"));
  EXPECT_THAT(Problem(Binary(0x21, 0x21, kV6.substr(1))), HasSubstr("too short"));
  EXPECT_THAT(Problem(Binary(0x21, 0x31, std::string(215, '/'))), HasSubstr("too short"));
}

TEST(ProxyProtocolV2Test, RejectsTooLongHeaders) {
  EXPECT_EQ(Source(Binary(0x21, 0x11, kV4 + std::string(kMaxProxyHeader - 28, 'x'))),
            "::ffff:192.0.2.1 56324");
  EXPECT_THAT(Problem(Binary(0x21, 0x11, kV4 + std::string(kMaxProxyHeader - 27, 'x'))),
              HasSubstr("4096 bytes"));
  EXPECT_THAT(Problem(Binary(0x20, 0, std::string(65535, 'x')).substr(0, 20)),
              HasSubstr("4096 bytes"));
}

}  // namespace
}  // namespace tidegate::net

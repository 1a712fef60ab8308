// SPDX-License-Identifier: Apache-2.0
// Each byte is judged only by the bytes before it, so that the result does not depend on how the
// header was cut into pieces. A word of version 1 is judged when it is complete.
#include "net/proxy_protocol.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"

namespace tidegate::net {
namespace {

constexpr std::string_view kNoHeader = "the connection does not begin with a PROXY protocol header";

ProxyHeader More() noexcept { return {}; }
ProxyHeader Malformed(std::string_view problem) noexcept {
  return {.parsed = Parsed::kRefused, .size = 0, .source = std::nullopt, .problem = problem};
}
ProxyHeader Done(std::size_t size, const std::optional<Peer>& source) noexcept {
  return {.parsed = Parsed::kDone, .size = size, .source = source, .problem = {}};
}

/// Returns true if one of the texts begins with the other.
bool Begins(std::string_view bytes, std::string_view whole) noexcept {
  return bytes.substr(0, whole.size()) == whole.substr(0, bytes.size());
}

Peer PeerOf(int family, const unsigned char* address, unsigned port) noexcept {
  Peer peer;
  if (family == AF_INET6) {
    std::copy_n(address, 16, peer.bytes.begin());
  } else {
    peer.bytes[10] = peer.bytes[11] = 0xff;
    std::copy_n(address, 4, peer.bytes.begin() + 12);
  }
  peer.port = static_cast<unsigned short>(port);
  return peer;
}

// --- Version 1: a line ------------------------------------------------------

constexpr std::string_view kLineStart = "PROXY ";
/// The longest line with its CRLF, as the specification computes it.
constexpr std::size_t kMaxLine = 107;

struct Family {
  std::string_view word;  ///< The word, with the space after it.
  int family;
  std::string_view alphabet;  ///< The characters of its addresses.
  std::size_t longest;        ///< The longest address that inet_pton takes.
};
constexpr std::array kFamilies = {
    Family{"TCP4 ", AF_INET, "0123456789.", 15},
    Family{"TCP6 ", AF_INET6, "0123456789abcdefABCDEF:.", 45},
};
constexpr std::string_view kUnknown = "UNKNOWN";

/// A word of the line, and the character after it.
struct Word {
  std::string_view alphabet;
  std::size_t longest;
  char end;
};

bool ReadAddress(std::string_view word, int family, unsigned char* address) noexcept {
  std::array<char, 46> text{};  // With room for the NUL that inet_pton needs.
  std::ranges::copy(word, text.begin());
  return inet_pton(family, text.data(), address) == 1;
}

bool ReadPort(std::string_view word, unsigned& port) noexcept {
  const bool zero_leads = word.size() > 1 && word[0] == '0';
  const auto number = ParseNumber<std::uint16_t>(word);
  port = number.value_or(0);
  return number && !zero_leads;
}

/// Reads the addresses of source and destination, and then their ports.
ProxyHeader ReadAddresses(std::string_view line, std::size_t at, const Family& family) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  const Word address{family.alphabet, family.longest, ' '};
  const Word words[] = {address, address, {kDigits, 5, ' '}, {kDigits, 5, '\r'}, {"", 0, '\n'}};
  std::array<unsigned char, 16> addresses[2];
  std::array<unsigned, 2> ports{};
  const auto read = [&](std::size_t i, std::string_view word) {
    if (i < 2) return ReadAddress(word, family.family, addresses[i].data());
    return i == 4 || ReadPort(word, ports[i - 2]);
  };
  for (std::size_t i = 0; i < std::size(words); ++i) {
    const std::string_view rest = line.substr(at);
    const std::string_view word = rest.substr(0, rest.find_first_not_of(words[i].alphabet));
    const bool too_long = word.size() > words[i].longest;
    if (!too_long && word.size() == rest.size()) return More();
    if (too_long || rest[word.size()] != words[i].end || !read(i, word)) {
      return Malformed(
          "the PROXY protocol header is not two addresses of its family, two ports, one space "
          "before each, and CRLF");
    }
    at += word.size() + 1;
  }
  return Done(at, PeerOf(family.family, addresses[0].data(), ports[0]));
}

/// Skips the text after UNKNOWN.
ProxyHeader SkipUnknown(std::string_view line, std::size_t at) noexcept {
  if (at == line.size()) return More();
  if (line[at] != ' ' && line[at] != '\r') return Malformed(kNoHeader);
  const std::size_t end = line.find_first_of("\r\n", at);
  if (end == std::string_view::npos) return More();
  if (line[end] == '\r' && end + 1 == line.size()) return More();
  if (line.substr(end, 2) != "\r\n") {
    return Malformed("the line of the PROXY protocol header does not end with CRLF");
  }
  return Done(end + 2, std::nullopt);
}

ProxyHeader ReadLine(std::string_view line) noexcept {
  if (!Begins(line, kLineStart)) return Malformed(kNoHeader);
  if (line.size() <= kLineStart.size()) return More();
  const std::string_view rest = line.substr(kLineStart.size());
  for (const Family& family : kFamilies) {
    if (!Begins(rest, family.word)) continue;
    if (rest.size() < family.word.size()) return More();
    return ReadAddresses(line, kLineStart.size() + family.word.size(), family);
  }
  if (!Begins(rest, kUnknown)) {
    return Malformed("the PROXY protocol header names neither TCP4 nor TCP6 nor UNKNOWN");
  }
  if (rest.size() < kUnknown.size()) return More();
  return SkipUnknown(line, kLineStart.size() + kUnknown.size());
}

// --- Version 2: binary ------------------------------------------------------

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
/// The size of the fixed part: the signature; version and command; family and transport; the number
/// of bytes that follow.
constexpr std::size_t kFixed = 16;
constexpr unsigned kLocal = 0;
constexpr unsigned kProxy = 1;
constexpr unsigned kTcp4 = 0x11;
constexpr unsigned kTcp6 = 0x21;
/// The size of the addresses and ports by family: none, IPv4, IPv6, two paths of Unix sockets.
constexpr std::array<std::size_t, 4> kAddressBytes = {0, 12, 36, 216};

ProxyHeader ReadBinary(std::string_view bytes) noexcept {
  if (!Begins(bytes, kSignature)) return Malformed(kNoHeader);
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t size = bytes.size();
  if (size <= 12) return More();
  if (data[12] >> 4 != 2)
    return Malformed("the PROXY protocol header has another version than 1 and 2");
  const unsigned command = data[12] & 0xf;
  if (command > kProxy) {
    return Malformed("the PROXY protocol header has a command other than LOCAL and PROXY");
  }
  if (size <= 13) return More();
  // With LOCAL the family is ignored.
  const unsigned family = command == kLocal ? 0 : data[13];
  if (family >> 4 >= kAddressBytes.size() || (family & 0xf) > 2) {
    return Malformed("the PROXY protocol header has an unknown family or transport");
  }
  if (size <= 14) return More();
  const std::size_t length =
      data[14] * 256u + (size > 15 ? data[15] : 0u);  // A lower bound if a byte is missing.
  if (length > kMaxProxyHeader - kFixed) {
    return Malformed("the PROXY protocol header is longer than 4096 bytes");
  }
  if (size <= 15) return More();
  if (length < kAddressBytes[family >> 4]) {
    return Malformed("the PROXY protocol header is too short for the addresses of its family");
  }
  if (size < kFixed + length) return More();
  // The addresses of source and destination come first, then their ports.
  const auto port = [data](std::size_t at) { return data[at] * 256u + data[at + 1]; };
  std::optional<Peer> source;
  if (family == kTcp4) source = PeerOf(AF_INET, data + kFixed, port(kFixed + 8));
  if (family == kTcp6) source = PeerOf(AF_INET6, data + kFixed, port(kFixed + 32));
  return Done(kFixed + length, source);
}

}  // namespace

static_assert(kMaxProxyHeader == 4096, "a message above has this number");

ProxyHeader ParseProxyHeader(std::string_view bytes) noexcept {
  if (bytes.empty()) return More();
  if (bytes[0] == kSignature[0]) return ReadBinary(bytes);
  ProxyHeader header = ReadLine(bytes.substr(0, kMaxLine));
  if (header.parsed == Parsed::kMore && bytes.size() >= kMaxLine) {
    return Malformed("the line of the PROXY protocol header is longer than 107 bytes");
  }
  return header;
}

}  // namespace tidegate::net

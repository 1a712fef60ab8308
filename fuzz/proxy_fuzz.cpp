// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as the beginning of a connection from a proxy. More bytes must never change a
// result; the parser must request more bytes of a valid header until it is complete; and a header
// that was read, written again as version 2, must give the same client.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "net/proxy_protocol.hpp"

namespace tidegate::net {
namespace {

/// Longer inputs than the longest header plus some bytes test nothing new.
constexpr std::size_t kMostBytes = kMaxProxyHeader + 32;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "proxy_fuzz: %s\n", what);
  std::abort();
}

/// Parses `bytes` in a buffer of exactly their size, so that the address sanitizer finds reads
/// beyond its end.
ProxyHeader Parse(std::string_view bytes) {
  const auto buffer = std::make_unique<char[]>(bytes.size());
  bytes.copy(buffer.get(), bytes.size());
  return ParseProxyHeader({buffer.get(), bytes.size()});
}

bool SameSource(const ProxyHeader& a, const ProxyHeader& b) {
  if (!a.source || !b.source) return a.source.has_value() == b.source.has_value();
  return a.source->bytes == b.source->bytes && a.source->port == b.source->port;
}

bool Same(const ProxyHeader& a, const ProxyHeader& b) {
  return a.parsed == b.parsed && a.size == b.size && a.problem == b.problem && SameSource(a, b);
}

std::string AsVersion2(const Peer& peer) {
  std::string header("\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24", 16);
  header.append(reinterpret_cast<const char*>(peer.bytes.data()), peer.bytes.size());
  header.append(16, '\0');
  header += static_cast<char>(peer.port >> 8);
  header += static_cast<char>(peer.port & 0xff);
  return header + std::string(2, '\0');
}

void Check(std::string_view bytes) {
  const ProxyHeader whole = Parse(bytes);
  bool decided = false;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // Between the first 256 bytes and the last two, a header has only bytes that are skipped.
    if (size == 256 && bytes.size() > 300) size = bytes.size() - 2;
    const ProxyHeader part = Parse(bytes.substr(0, size));
    Require(!decided || part.parsed != Parsed::kMore, "a result is taken back");
    decided = part.parsed != Parsed::kMore;
    Require(!decided || Same(part, whole), "more bytes change the result");
    Require(whole.parsed != Parsed::kDone || decided == (size >= whole.size),
            "a header is done before or after its end");
  }
  if (whole.parsed == Parsed::kMore) {
    Require(bytes.size() < kMaxProxyHeader, "it waits for more than the longest header");
  }
  Require((whole.parsed == Parsed::kRefused) == !whole.problem.empty(), "bad without a word");
  if (whole.parsed != Parsed::kDone) return;
  Require(whole.size > 0 && whole.size <= bytes.size(), "more than there is");
  Require(whole.size <= kMaxProxyHeader, "longer than the longest");
  if (!whole.source) return;
  const std::string again = AsVersion2(*whole.source);
  Require(SameSource(Parse(again), whole), "another client, written again");
}

}  // namespace
}  // namespace tidegate::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > tidegate::net::kMostBytes) return 0;
  tidegate::net::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}

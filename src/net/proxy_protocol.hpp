// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate::net {

/// What a proxy says of the client at the beginning of a connection: PROXY protocol, versions 1
/// and 2. Pure: bytes in, a verdict out.
struct ProxyHeader {
  enum class Verdict : std::uint8_t { kMore, kDone, kBad };

  Verdict verdict = Verdict::kMore;
  std::size_t size = 0;  ///< kDone: so many bytes are the header; what follows is not.
  std::optional<Peer>
      source;                ///< kDone: nothing where the proxy speaks for itself (LOCAL, UNKNOWN,
                             ///< or a family that has no addresses): the real peer counts.
  std::string_view problem;  ///< kBad: what is wrong, a sentence without a full stop.
};

/// The longest header that is accepted: version 2 with all that may follow the addresses.
inline constexpr std::size_t kMaxProxyHeader = 4096;

/// Reads the header at the beginning of `bytes`, which may hold more. kMore only while more bytes
/// could make it good: what cannot be a header any more is kBad at once, an address of version 1
/// when the space behind it has come.
[[nodiscard]] ProxyHeader ParseProxyHeader(std::string_view bytes) noexcept;

}  // namespace tidegate::net

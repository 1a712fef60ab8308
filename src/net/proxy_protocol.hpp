// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate::net {

/// The client that a PROXY protocol header announces, of version 1 or 2.
struct ProxyHeader {
  Parsed parsed = Parsed::kMore;
  std::size_t size = 0;  ///< kDone: the size of the header.
  /// kDone: the client. If the header names none (LOCAL, UNKNOWN, family without addresses), it is
  /// empty, and the peer is the client.
  std::optional<Peer> source;
  std::string_view problem;  ///< kRefused: what is wrong.
};

/// The longest header that is accepted: version 2, with the data that may follow the addresses.
inline constexpr std::size_t kMaxProxyHeader = 4096;

/// Reads the header at the beginning of `bytes`, which may contain more. No I/O. Refuses
/// as soon as no further bytes could complete a valid header; an address of version 1 is judged
/// when the space after it has arrived.
[[nodiscard]] ProxyHeader ParseProxyHeader(std::string_view bytes) noexcept;

}  // namespace tidegate::net

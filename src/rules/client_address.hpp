// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rules/address.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// Whom to believe about a client's address. By default: nobody.
struct ClientAddressPolicy {
  enum class Header : std::uint8_t { kXForwardedFor, kForwarded };

  std::vector<Network> trusted_proxies;
  Header header = Header::kXForwardedFor;
  /// 0: walk from the right while addresses are trusted. N: take the Nth from the right.
  int hops = 0;

  [[nodiscard]] bool Trusts(const Address& peer) const noexcept;
};

/// Who the client is: the peer, or, behind trusted proxies, whom they say it is. Never fails: what
/// cannot be read stops the walk at the last good address. All lines of the header are one list.
[[nodiscard]] Address ClientAddress(const ClientAddressPolicy& policy, const Address& peer,
                                    std::span<const HeaderField> headers) noexcept;

}  // namespace tidegate

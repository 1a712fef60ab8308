// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "identity/address.hpp"
#include "identity/request_view.hpp"

namespace tidegate {

/// The proxies that are trusted to report a client's address. By default none is.
struct ClientAddressPolicy {
  enum class Header : std::uint8_t { kXForwardedFor, kForwarded };

  std::vector<Network> trusted_proxies;
  Header header = Header::kXForwardedFor;
  /// 0: skip trusted proxies from the right. N: use the Nth address from the right.
  int hops = 0;

  [[nodiscard]] bool Trusts(const Address& peer) const noexcept;
};

/// Returns the client's address: the peer's, or the one that trusted proxies report. Never fails:
/// at an entry that is not an address (junk, `unknown`, `_hidden`, an element without `for`), the
/// last valid address is used. Empty entries are skipped. All lines of the header are one list.
///
/// The list is read from its right end, which trusted proxies wrote, and no further than needed:
/// text that a client put to the left of that, such as an unbalanced quote, cannot change the
/// result. Does not allocate.
[[nodiscard]] Address ClientAddress(const ClientAddressPolicy& policy, const Address& peer,
                                    std::span<const HeaderField> headers) noexcept;

}  // namespace tidegate

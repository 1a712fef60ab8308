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

/// Returns the client's address: the peer's, or the one that trusted proxies report. Never fails:
/// an entry that cannot be read (junk, `unknown`, `_hidden`, an element without `for`) stops the
/// walk at the last good address. Empty entries are skipped. All lines of the header are one list.
///
/// The list is read from its right end, which trusted proxies wrote, and no further than needed:
/// nothing that a client put left of that, an unbalanced quote for one, changes how it is read.
/// Does not allocate.
[[nodiscard]] Address ClientAddress(const ClientAddressPolicy& policy, const Address& peer,
                                    std::span<const HeaderField> headers) noexcept;

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "rules/match_conditions.hpp"

#include <algorithm>

#include "rules/match_index.hpp"

namespace tidegate {

NetworkSet::NetworkSet(std::span<const Network> networks) {
  for (const Network& network : networks) networks_.emplace_back(network.bits(), network.base());
  std::sort(networks_.begin(), networks_.end());
  for (const auto& [bits, base] : networks_) {
    if (lengths_.empty() || lengths_.back() != bits) lengths_.push_back(bits);
  }
}

bool NetworkSet::Contains(const Address& address) const noexcept {
  const int shortest = address.is_v4() ? Network::kV4Bits : 0;
  return std::any_of(lengths_.begin(), lengths_.end(), [&](int bits) {
    return bits >= shortest && std::binary_search(networks_.begin(), networks_.end(),
                                                  std::pair(bits, address.Masked(bits)));
  });
}

bool MatchConditions::Hold(const RequestView& request) const noexcept {
  if (!methods_.empty() &&
      std::find(methods_.begin(), methods_.end(), request.method) == methods_.end()) {
    return false;
  }
  for (const MatchSpec::Header& wanted : headers_) {
    const bool holds =
        std::any_of(request.headers.begin(), request.headers.end(), [&](const HeaderField& field) {
          return EqualsIgnoreCase(field.name, wanted.name) &&
                 GlobMatches(wanted.pattern, field.value);
        });
    if (!holds) return false;
  }
  return networks_.empty() || (request.has_client && networks_.Contains(request.client));
}

bool GlobMatches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // The last `*` passed, and where its run ends now.
  std::size_t run_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {  // Before the literal: text may hold a '*' too.
      star = p++;
      run_end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {  // Only the last run needs to grow.
      p = star + 1;
      t = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tidegate

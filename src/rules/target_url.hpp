// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/gateway_spec.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Reads `http://host[:port]` or `https://host[:port]`; the host is a name or an address, IPv6 in
/// brackets. Ports 80 and 443 where there is none. The Error says what would be right and shows
/// nothing of the text: whoever writes a password into it has a mistake to see, not a password.
[[nodiscard]] Result<UpstreamSpec::Target> ParseTargetUrl(std::string_view text);

}  // namespace tidegate

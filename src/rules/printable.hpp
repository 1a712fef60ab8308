// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tidegate {

/// What somebody sent, fit for a message or a log line: cut after 64 bytes, and with everything but
/// printable ASCII as `\xNN`, so that it can neither break a line nor hide in it.
[[nodiscard]] std::string Printable(std::string_view text);

}  // namespace tidegate

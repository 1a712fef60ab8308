// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidegate {

/// A new HMAC key, or another name that nobody else has: 256 bits, printable.
[[nodiscard]] std::string RandomKey();
/// Tells keys apart without telling anything of them.
[[nodiscard]] std::string KeyId(const std::string& key);

}  // namespace tidegate

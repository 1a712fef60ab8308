// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory_resource>
#include <optional>
#include <string_view>

namespace tidegate {

/// RFC 4648 base64url as RFC 7515 wants it: no padding, nothing outside the alphabet, unused bits
/// zero, so that one value has one text. The bytes are allocated from `memory`.
[[nodiscard]] std::optional<std::string_view> DecodeBase64Url(std::string_view text,
                                                              std::pmr::memory_resource& memory);

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidegate::redis {

/// Whether what a server told may be a host: 1 to 253 visible ASCII characters. It ends up in logs
/// and in a resolver.
[[nodiscard]] bool IsHost(std::string_view text) noexcept;

/// Digits and nothing else, without a sign.
[[nodiscard]] std::optional<std::int64_t> ReadWhole(std::string_view digits) noexcept;

/// 1 to 65535.
[[nodiscard]] std::optional<std::uint16_t> ToPort(std::int64_t number) noexcept;
[[nodiscard]] std::optional<std::uint16_t> ReadPort(std::string_view digits) noexcept;

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// The Lua that runs inside Redis: made from scripts/*.lua, each with its KEYS, ARGV and
/// reply at its top.
namespace tidegate::redis {

/// Applies a batch of entries; docs/adr/0013 is its contract.
[[nodiscard]] std::string_view ApplyScript() noexcept;
/// A node's sign of life, and what it learns of the others.
[[nodiscard]] std::string_view HeartbeatScript() noexcept;

/// The table that a fleet shares: overrides, and who changed them.
[[nodiscard]] std::string_view RegisterScript() noexcept;

}  // namespace tidegate::redis

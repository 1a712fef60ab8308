// SPDX-License-Identifier: Apache-2.0
#include "tidegate/decision.hpp"

#include <array>

namespace tidegate {

std::string_view Name(Rung rung) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"store", "cache", "local", "open", "closed"};
  return kNames[static_cast<std::size_t>(rung)];
}

}  // namespace tidegate

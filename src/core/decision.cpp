// SPDX-License-Identifier: Apache-2.0
#include "tidegate/decision.hpp"

#include <array>

namespace tidegate {

std::string_view Name(DecidedBy decided_by) noexcept {
  constexpr std::array<std::string_view, kDecisionSources> kNames = {"store", "cache",  "local",
                                                                     "open",  "closed", "operator"};
  return kNames[static_cast<std::size_t>(decided_by)];
}

std::string_view Name(Reason reason) noexcept {
  constexpr std::array<std::string_view, kDecisionReasons> kNames = {
      "quota",    "banned",  "exempt",       "rediserror", "badresponse",
      "badtypes", "timeout", "breaker_open", "queue_full"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace tidegate

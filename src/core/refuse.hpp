// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "tidegate/error.hpp"

namespace tidegate {

/// What a function returns that cannot do what it was asked for: `why` is told to whoever asked.
[[nodiscard]] inline std::unexpected<Error> Refuse(ErrorCode code, std::string why) {
  return std::unexpected(Error{code, std::move(why)});
}

}  // namespace tidegate

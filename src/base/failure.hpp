// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "tidegate/error.hpp"

namespace tidegate {

/// Returns an Error for functions that return a Result; `message` is a human-readable reason.
[[nodiscard]] inline std::unexpected<Error> Failure(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace tidegate

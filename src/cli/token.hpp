// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tidegate/error.hpp"

namespace tidegate::cli {

/// The caller's secret: from the file, else from the environment's TIDEGATE_TOKEN, else none. Never
/// an argument, since every user of the machine can read those of a process, and never part of a
/// message.
[[nodiscard]] Result<std::string> ReadToken(const std::string& file);

}  // namespace tidegate::cli

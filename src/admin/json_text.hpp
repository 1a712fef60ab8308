// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <string_view>

#include "tidegate/clock.hpp"

namespace tidegate {

[[nodiscard]] inline boost::json::string JsonText(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

/// Whole milliseconds, rounded up, as everywhere in the API.
[[nodiscard]] inline std::int64_t JsonMillis(Micros duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

}  // namespace tidegate

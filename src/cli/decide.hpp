// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "tidegate/clock.hpp"

namespace tidegate::cli {

struct DecideOptions {
  std::string rule;
  std::string identity;
  std::int64_t cost = 0;  ///< 0: the rule's own.
  std::string server = "127.0.0.1:8081";
  bool peek = false;
  bool json = false;
  Micros timeout = std::chrono::seconds{2};
};

/// `tidegate decide`: asks a running server. Returns an exit code: 0 allowed, 1 denied, 3 no
/// answer.
[[nodiscard]] int Decide(const DecideOptions& options, std::ostream& out, std::ostream& err);

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

namespace tidegate::cli {

struct CheckOptions {
  std::string file;
  bool strict = false;  ///< Warnings fail too.
  bool json = false;    ///< One object instead of lines.
};

/// `tidegate check-config`: every problem on its line, then a verdict. Returns an exit code.
[[nodiscard]] int CheckConfig(const CheckOptions& options, std::ostream& out);

}  // namespace tidegate::cli

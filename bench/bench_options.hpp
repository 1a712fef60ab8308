// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::bench {

/// The command line of the benches that run a tidegate beside others: `TIDEGATE [--quick]
/// [ROW...]`.
struct BenchOptions {
  std::string tidegate;
  bool quick = false;
  std::vector<std::string> rows;  ///< Those whose name begins with one of these; none: all.

  /// Throws std::runtime_error with what is wrong; `program` is named in it.
  [[nodiscard]] static BenchOptions Parse(std::string_view program, int argc, char** argv);
  [[nodiscard]] bool Wants(std::string_view row) const;
};

}  // namespace tidegate::bench

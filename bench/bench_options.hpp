// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::bench {

/// The command line of the benchmarks that compare a tidegate with other servers: `TIDEGATE
/// [--quick] [ROW...]`.
struct BenchOptions {
  std::string tidegate;
  bool quick = false;
  std::vector<std::string> rows;  ///< Run only rows whose name begins with one of these; empty:
                                  ///< all.

  /// Parses the command line. Throws std::runtime_error with a message that names `program` if it
  /// is invalid.
  [[nodiscard]] static BenchOptions Parse(std::string_view program, int argc, char** argv);
  [[nodiscard]] bool Wants(std::string_view row) const;
};

}  // namespace tidegate::bench

// SPDX-License-Identifier: Apache-2.0
#include "bench_options.hpp"

#include <algorithm>
#include <stdexcept>

namespace tidegate::bench {

BenchOptions BenchOptions::Parse(std::string_view program, int argc, char** argv) {
  if (argc < 2) {
    throw std::runtime_error("usage: " + std::string(program) + " TIDEGATE [--quick] [ROW...]");
  }
  BenchOptions options;
  options.tidegate = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument.starts_with("-")) {
      throw std::runtime_error("no option '" + argument + "': there is only --quick");
    } else {
      options.rows.push_back(argument);
    }
  }
  return options;
}

bool BenchOptions::Wants(std::string_view row) const {
  return rows.empty() ||
         std::ranges::any_of(rows, [&](const std::string& one) { return row.starts_with(one); });
}

}  // namespace tidegate::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/top_view.hpp"

namespace tidegate::cli {

struct Size {
  int rows = 24;  ///< 0: as many as are needed, and no line about keys.
  int columns = 80;
};

/// The view as lines: as many as there are rows, none wider than the columns, and nothing foreign
/// in them but printable text. What does not fit is left out from the bottom.
[[nodiscard]] std::vector<std::string> Render(const View& view, Size size, Colours colours);

}  // namespace tidegate::cli

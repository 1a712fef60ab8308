// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/admin_client.hpp"

namespace tidegate::cli {

struct TopOptions {
  AskOptions ask = {};  ///< With `json`: one object per refresh.
  Micros every = std::chrono::seconds{1};
  bool once = false;  ///< One view as plain text, or one object.
};

/// `tidegate top`: a live view of a server, full-screen in a terminal; elsewhere one view as text.
/// Returns an exit code.
[[nodiscard]] int Top(const TopOptions& options, const Console& console);

}  // namespace tidegate::cli

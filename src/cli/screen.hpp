// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/top_render.hpp"

namespace tidegate::cli {

/// The whole terminal, for as long as this lives: another screen, no cursor, keys as they are
/// pressed. What was there before comes back at the end, and at a crash too. One at a time.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Of the terminal now.
  [[nodiscard]] static Size GetSize();
  /// One line for each row. False: the terminal is gone.
  [[nodiscard]] bool Draw(const std::vector<std::string>& lines);

  /// To let the shell have it for a while, and back.
  void Leave();
  void Enter();
};

}  // namespace tidegate::cli

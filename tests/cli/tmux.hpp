// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "redis/redis_server.hpp"
#include "support/files.hpp"

namespace tidegate::cli_test {

/// A real terminal: a new tmux server with a shell in it. The destructor ends both.
class Tmux {
 public:
  /// Starts a terminal with this number of columns and rows. Throws if tmux is not installed.
  Tmux(int columns, int rows);
  ~Tmux();
  Tmux(const Tmux&) = delete;
  Tmux& operator=(const Tmux&) = delete;

  /// Types `line` and Enter.
  void Type(std::string_view line);
  /// Presses one key, by its name: `q`, `C-c`.
  void Press(std::string_view key);
  void Resize(int columns, int rows);
  [[nodiscard]] std::string Screen();
  /// Waits until the screen contains the text. Returns false after a timeout.
  [[nodiscard]] bool Shows(std::string_view text);
  /// Returns the value of a variable of the pane, such as `alternate_on`, `cursor_flag` or
  /// `pane_width`.
  [[nodiscard]] std::string Variable(std::string_view name);

 private:
  std::string Run(const std::string& arguments);

  test::TemporaryFolder folder_;
};

}  // namespace tidegate::cli_test

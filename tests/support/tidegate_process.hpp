// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"

namespace tidegate::test {

/// The tidegate binary under test in its own process; its output goes to a file.
class TidegateProcess : public ChildProcess {
 public:
  TidegateProcess() = default;  ///< Holds no process.
  /// Starts the process. The file `options.output` is deleted first. `binary` is the path of the
  /// binary, which may be a copy.
  TidegateProcess(std::vector<std::string> arguments, const Options& options,
                  const std::filesystem::path& binary = Binary());

  [[nodiscard]] static std::filesystem::path Binary();

  /// Returns everything that the process has printed and logged, and the signal that ended it, if
  /// any.
  [[nodiscard]] std::string Output() const;
  [[nodiscard]] int CountInOutput(std::string_view words) const;

  /// Returns the port in the log line about a listener, or 0 while there is no such line.
  /// `listener` is the first words of the line, such as `HTTP API`, `admin`, `gateway` or `Redis
  /// protocol`.
  [[nodiscard]] int PortIfListening(std::string_view listener) const;
  /// Waits for that line and returns the port. Throws if the line does not appear or the process
  /// ends.
  [[nodiscard]] int Port(std::string_view listener);

 private:
  std::filesystem::path output_;
};

}  // namespace tidegate::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"

namespace tidegate::test {

/// The binary under test as a process of its own, with its output in a file.
class TidegateProcess : public ChildProcess {
 public:
  TidegateProcess() = default;  ///< No process.
  /// `options.output` is emptied first. `binary`: another copy of the binary under test.
  TidegateProcess(std::vector<std::string> arguments, Options options,
                  const std::filesystem::path& binary = Binary());

  [[nodiscard]] static std::filesystem::path Binary();

  /// Everything that it has printed and logged, and the signal that ended it.
  [[nodiscard]] std::string Output() const;
  [[nodiscard]] int CountInOutput(std::string_view words) const;

  /// The port in the log's line about a listener, or 0 as long as there is none. `listener`: the
  /// first words of that line, such as `HTTP API`, `admin`, `gateway` or `Redis protocol`.
  [[nodiscard]] int PortIfListening(std::string_view listener) const;
  /// Waits for that line. Throws if it does not come or if the process ends.
  [[nodiscard]] int Port(std::string_view listener);

 private:
  std::filesystem::path output_;
};

}  // namespace tidegate::test

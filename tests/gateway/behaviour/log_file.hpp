// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"

namespace tidegate::behaviour {

/// An access log in a new temporary folder.
class LogFile {
 public:
  /// Returns the configuration line that writes the access log to this file.
  [[nodiscard]] std::string yaml() const { return "access_log: " + path().string() + "\n"; }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "access.log"; }
  /// Returns the whole text that has been written so far.
  [[nodiscard]] std::string text() const { return test::ReadFile(path()); }
  /// Waits until the log has `count` lines and returns them. The test fails if there are more or
  /// fewer, or if a line is not a JSON object.
  [[nodiscard]] std::vector<boost::json::object> Lines(std::size_t count) const;
  /// Waits for the only line of the log and returns it.
  [[nodiscard]] boost::json::object Line() const;

 private:
  test::TemporaryFolder folder_;
};

}  // namespace tidegate::behaviour

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"

namespace tidegate::behaviour {

/// An access log in a temporary folder of its own.
class LogFile {
 public:
  /// For the configuration.
  [[nodiscard]] std::string yaml() const { return "access_log: " + path().string() + "\n"; }
  [[nodiscard]] std::filesystem::path path() const { return folder_ / "access.log"; }
  /// All that has been written so far.
  [[nodiscard]] std::string text() const { return test::ReadFile(path()); }
  /// Waits until there are so many lines; one that is no JSON object fails the test, and so do
  /// more or fewer.
  [[nodiscard]] std::vector<boost::json::object> Lines(std::size_t count) const;
  /// The only line.
  [[nodiscard]] boost::json::object Line() const;

 private:
  test::TemporaryFolder folder_;
};

}  // namespace tidegate::behaviour

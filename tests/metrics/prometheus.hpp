// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/files.hpp"

namespace tidegate::metrics_test {

/// A rule of Prometheus's as it runs it.
struct RunningRule {
  std::string name;
  std::string expression;
  bool alerting = false;  ///< Else recording.
  std::string problem;    ///< The error of its last evaluation; empty: none.
};

/// One series of a result: its labels and its value.
struct Series {
  boost::json::object labels;
  bool has_number = false;  ///< A value that is not NaN.
};

/// A real Prometheus of the test's own, killed at the end.
class Prometheus {
 public:
  /// `folder` outlives it, and takes what it stores. Throws, with what it said, if it does not come
  /// up.
  Prometheus(const std::filesystem::path& folder, const std::string& config);

  /// Returns the series of any second since the start. `problem`: why there is no result, if not
  /// empty.
  struct Answer {
    std::vector<Series> series;
    std::string problem;
    /// Returns true if a series has a value that is not NaN.
    [[nodiscard]] bool HasData() const;
    [[nodiscard]] bool Names(std::string_view label, std::string_view value) const;
  };
  [[nodiscard]] Answer SinceStart(const std::string& expression) const;
  /// Returns true if there is data now.
  [[nodiscard]] bool True(const std::string& expression) const;
  /// The values of a label on series that match.
  [[nodiscard]] std::vector<std::string> LabelValues(const std::string& label,
                                                     const std::string& selector) const;
  [[nodiscard]] std::vector<RunningRule> Rules() const;
  [[nodiscard]] std::string Output() const { return test::ReadFile(folder_ / "prometheus.log"); }

 private:
  [[nodiscard]] boost::json::object Get(const std::string& path) const;

  std::filesystem::path folder_;
  int port_ = 0;
  test::ChildProcess process_;
  long started_ = 0;
};

}  // namespace tidegate::metrics_test

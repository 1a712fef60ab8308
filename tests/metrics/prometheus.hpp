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

/// A rule as Prometheus runs it.
struct RunningRule {
  std::string name;
  std::string expression;
  bool alerting = false;  ///< True: an alerting rule. False: a recording rule.
  std::string problem;    ///< Error of the last evaluation; empty: none.
};

/// One series of a query's result.
struct Series {
  boost::json::object labels;
  bool has_number = false;  ///< Has a value that is not NaN.
};

/// A Prometheus process, which the destructor kills.
class Prometheus {
 public:
  /// Starts Prometheus, which stores its data in `folder`. Throws with the output of Prometheus if
  /// it does not start. REQUIRES: `folder` outlives this object.
  Prometheus(const std::filesystem::path& folder, const std::string& config);

  /// Result of a query for each second since the start. `problem`: why there is no result; empty:
  /// none.
  struct Answer {
    std::vector<Series> series;
    std::string problem;
    /// Returns true if a series has a value that is not NaN.
    [[nodiscard]] bool HasData() const;
    [[nodiscard]] bool Names(std::string_view label, std::string_view value) const;
  };
  [[nodiscard]] Answer SinceStart(const std::string& expression) const;
  /// Returns true if the expression has a result now.
  [[nodiscard]] bool True(const std::string& expression) const;
  /// Returns the values of a label on the series that match `selector`.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace tidegate::metrics_test {

/// A rule of Prometheus's as it runs it.
struct RunningRule {
  std::string name;
  std::string expression;
  bool alerting = false;  ///< Else recording.
  std::string problem;    ///< Of its last evaluation; empty: none.
};

/// One series of an answer: its labels, and what it is good for here.
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
  ~Prometheus();
  Prometheus(const Prometheus&) = delete;
  Prometheus& operator=(const Prometheus&) = delete;

  /// What there was at any second since the start. `problem`: why there is no answer, if not empty.
  struct Answer {
    std::vector<Series> series;
    std::string problem;
    /// Whether a series has a number that is one.
    [[nodiscard]] bool HasData() const;
    [[nodiscard]] bool Names(std::string_view label, std::string_view value) const;
  };
  [[nodiscard]] Answer SinceStart(const std::string& expression) const;
  /// Whether it has data now.
  [[nodiscard]] bool True(const std::string& expression) const;
  /// The values of a label on series that match.
  [[nodiscard]] std::vector<std::string> LabelValues(const std::string& label,
                                                     const std::string& selector) const;
  [[nodiscard]] std::vector<RunningRule> Rules() const;
  [[nodiscard]] std::string Said() const;

 private:
  [[nodiscard]] boost::json::object Get(const std::string& path) const;

  std::filesystem::path folder_;
  int port_ = 0;
  pid_t pid_ = -1;
  long started_ = 0;
};

}  // namespace tidegate::metrics_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::test {

/// One line with a value in the Prometheus text format.
struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct SampleFamily {
  std::string name;
  std::string help;
  std::string type;
  std::vector<Sample> samples;
};

/// A parsed text in the Prometheus format. The parser is stricter than that of Prometheus, which
/// uses the last of two equal series and accepts inconsistent histograms.
struct MetricsText {
  std::vector<SampleFamily> families;
  std::vector<std::string> problems;  ///< Violations of the format; empty: the text is valid.

  [[nodiscard]] static MetricsText Read(std::string_view text);
  /// Returns the family with that name; nullptr if there is none.
  [[nodiscard]] const SampleFamily* Find(std::string_view name) const;
  /// Returns all problems, one on each line.
  [[nodiscard]] std::string Complaint() const;
};

}  // namespace tidegate::test

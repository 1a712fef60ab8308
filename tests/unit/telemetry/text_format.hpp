// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::test {

/// One line of the Prometheus text format that has a value.
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

/// A text in that format, read strictly, more so than by Prometheus, which
/// takes the last of two equal series and histograms that make no sense.
struct MetricsText {
  std::vector<SampleFamily> families;
  std::vector<std::string> problems;  ///< Empty: it is sound.

  [[nodiscard]] static MetricsText Read(std::string_view text);
  /// nullptr: there is none of that name.
  [[nodiscard]] const SampleFamily* Find(std::string_view name) const;
  /// All problems, a line each.
  [[nodiscard]] std::string Complaint() const;
};

}  // namespace tidegate::test

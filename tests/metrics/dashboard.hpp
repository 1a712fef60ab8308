// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::metrics_test {

/// The queries of a Grafana dashboard.
struct Dashboard {
  struct Target {
    std::string panel;
    std::string expression;  ///< The query with `All` chosen in every variable, as when the
                             ///< dashboard is opened.
  };
  struct Variable {
    std::string name;
    std::string selector;  ///< SELECTOR of label_values(SELECTOR, LABEL).
    std::string label;
  };
  std::vector<Target> targets;
  std::vector<Variable> variables;
  std::vector<std::string> problems;  ///< Descriptions of parts that Grafana could not draw.

  [[nodiscard]] static Dashboard Read(std::string_view text);
};

}  // namespace tidegate::metrics_test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate {

/// A metric: its name, help, type and samples.
struct MetricFamily {
  enum class Type : std::uint8_t { kCounter, kGauge, kHistogram };
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  struct Value {
    double value = 0;
    Labels labels = {};
    std::string_view suffix = {};  ///< For histograms: `_bucket`, `_sum` or `_count`.
  };
  std::string_view name;
  std::string_view help;
  Type type = Type::kCounter;
  std::vector<Value> values = {};

  /// Adds a sample.
  template <class Number>
  void Add(Number value, Labels labels, std::string_view suffix = {}) {
    values.push_back({static_cast<double>(value), std::move(labels), suffix});
  }
};

/// These two return a metric family with one sample, which has no labels.
template <class Number>
[[nodiscard]] MetricFamily Gauge(std::string_view name, std::string_view help, Number value) {
  return {name, help, MetricFamily::Type::kGauge, {{static_cast<double>(value)}}};
}
template <class Number>
[[nodiscard]] MetricFamily Counter(std::string_view name, std::string_view help, Number value) {
  return {name, help, MetricFamily::Type::kCounter, {{static_cast<double>(value)}}};
}

/// Returns a number as the format spells it: the shortest text that is exact, or `+Inf`.
[[nodiscard]] std::string NumberText(double value);
/// Returns the families in the Prometheus text format, version 0.0.4.
[[nodiscard]] std::string Expose(std::span<const MetricFamily> families);

/// Returns the metrics of the process under the names that all client libraries of Prometheus use.
/// Omits values that the system does not report.
[[nodiscard]] std::vector<MetricFamily> ProcessMetrics();

}  // namespace tidegate

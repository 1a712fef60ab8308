// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/decision_metrics.hpp"
#include "unit/telemetry/text_format.hpp"

namespace tidegate {
namespace {

using test::MetricsText;
using test::Sample;
using testing::HasSubstr;
using testing::IsEmpty;

struct BadText {
  const char* name;
  const char* text;
  const char* problem;
};

class StrictMetricsReaderTest : public testing::TestWithParam<BadText> {};

TEST_P(StrictMetricsReaderTest, RejectsInvalidExposition) {
  EXPECT_THAT(MetricsText::Read(GetParam().text).Complaint(), HasSubstr(GetParam().problem));
}

#define FAMILY "# HELP a_total Help.\n# TYPE a_total counter\n"
#define HISTOGRAM "# HELP h Help.\n# TYPE h histogram\n"
INSTANTIATE_TEST_SUITE_P(
    All, StrictMetricsReaderTest,
    testing::Values(
        BadText{"Unended", FAMILY "a_total 1", "does not end"},
        BadText{"Untyped", "a_total 1\n", "before the TYPE"},
        BadText{"HelpAlone", "# HELP a_total Help.\n", "without its TYPE"},
        BadText{"Twice", FAMILY FAMILY, "was there already"},
        BadText{"SeriesTwice", FAMILY "a_total{x=\"1\",y=\"2\"} 1\na_total{y=\"2\",x=\"1\"} 2\n",
                "a series that was there"},
        BadText{"OtherFamily", FAMILY "b_total 1\n", "another family"},
        BadText{"LabelName", FAMILY "a_total{1x=\"1\"} 1\n", "labels"},
        BadText{"LabelTwice", FAMILY "a_total{x=\"1\",x=\"2\"} 1\n", "labels"},
        BadText{"Quote", FAMILY "a_total{x=\"a\"b\"} 1\n", "labels"},
        BadText{"Escape", FAMILY "a_total{x=\"a\\t\"} 1\n", "labels"},
        BadText{"Number", FAMILY "a_total one\n", "no number"},
        BadText{"Negative", FAMILY "a_total -1\n", "below 0"},
        BadText{"Suffix", "# HELP a Help.\n# TYPE a counter\n", "_total"},
        BadText{"Shrinking", HISTOGRAM "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n",
                "cumulative"},
        BadText{"Falling", HISTOGRAM "h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 2\n", "rise"},
        BadText{"Endless", HISTOGRAM "h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n", "+Inf"},
        BadText{"Miscounted", HISTOGRAM "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n", "wrong"},
        BadText{"Sumless", HISTOGRAM "h_bucket{le=\"+Inf\"} 1\nh_count 1\n", "wrong"}),
    [](const auto& tested) { return std::string(tested.param.name); });
#undef FAMILY
#undef HISTOGRAM

/// Returns the value of the series with this name and these labels; -1 if there is none.
double ValueOf(const MetricsText& text, std::string_view family,
               const std::map<std::string, std::string>& labels, std::string_view name = {}) {
  const auto* const found = text.Find(family);
  if (found == nullptr) return -1;
  for (const Sample& sample : found->samples) {
    if (sample.labels == labels && sample.name == (name.empty() ? family : name)) {
      return sample.value;
    }
  }
  return -1;
}

TEST(ExpositionTest, EscapesLabelValues) {
  const std::string odd = "a\\b\"c\nd{}=,";
  const std::vector<MetricFamily> families = {
      {.name = "n_total", .help = "Help.", .values = {{2, {{"x", odd}, {"y", "z"}}}}},
      {"h",
       "Help.",
       MetricFamily::Type::kHistogram,
       {{1, {{"x", odd}, {"le", "0.5"}}, "_bucket"},
        {3, {{"x", odd}, {"le", "+Inf"}}, "_bucket"},
        {2.5, {{"x", odd}}, "_sum"},
        {3, {{"x", odd}}, "_count"}}}};
  const MetricsText text = MetricsText::Read(Expose(families));
  EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
  EXPECT_EQ(ValueOf(text, "n_total", {{"x", odd}, {"y", "z"}}), 2);
  EXPECT_EQ(ValueOf(text, "h", {{"x", odd}}, "h_count"), 3);
}

TEST(ExpositionTest, AddsDecisionsOfAllReactorsUnderAnyRuleName) {
  net::Timers timers;
  DecisionMetrics one(timers, {});
  DecisionMetrics two(timers, {});
  const Charge charge{.rule = {}, .identity = "a"};
  Charge shadow = charge;
  shadow.mode = Mode::kShadow;
  one.Count(1, charge, {});
  two.Count(1, charge, {});
  two.Count(0, shadow, {});
  const DecisionMetrics* const reactors[] = {&one, &two};
  const std::string odd = "a\\b\"c\nd{}=,";
  const MetricsText text = MetricsText::Read(Expose(DecisionFamilies(reactors, {"(other)", odd})));
  EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
  EXPECT_EQ(ValueOf(text, "tidegate_decisions_total",
                    {{"rule", odd}, {"outcome", "denied"}, {"decided_by", "store"}}),
            2);
  EXPECT_EQ(ValueOf(text, "tidegate_decisions_total",
                    {{"rule", "(other)"}, {"outcome", "shadow_denied"}, {"decided_by", "store"}}),
            1);
}

TEST(ProcessMetricsTest, ExportsProcessMetricsLikeClientLibraries) {
  const MetricsText text = MetricsText::Read(Expose(ProcessMetrics()));
  EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
  const double start = ValueOf(text, "process_start_time_seconds", {});
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(start, now - 3600);
  EXPECT_LE(start, now + 1);
  const double open = ValueOf(text, "process_open_fds", {});
  EXPECT_GE(open, 3);
  EXPECT_GE(ValueOf(text, "process_max_fds", {}), open);
  EXPECT_GE(ValueOf(text, "process_virtual_memory_bytes", {}),
            ValueOf(text, "process_resident_memory_bytes", {}));
  EXPECT_GT(ValueOf(text, "process_resident_memory_bytes", {}), 0);
}

}  // namespace
}  // namespace tidegate

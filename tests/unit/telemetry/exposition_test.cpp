// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "telemetry/process_metrics.hpp"
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

class StrictReaderTest : public testing::TestWithParam<BadText> {};

TEST_P(StrictReaderTest, Complains) {
  EXPECT_THAT(MetricsText::Read(GetParam().text).Complaint(), HasSubstr(GetParam().problem));
}

#define FAMILY "# HELP a_total Help.\n# TYPE a_total counter\n"
#define HISTOGRAM "# HELP h Help.\n# TYPE h histogram\n"
INSTANTIATE_TEST_SUITE_P(
    All, StrictReaderTest,
    testing::Values(
        BadText{"Unended", FAMILY "a_total 1", "does not end"},
        BadText{"Untyped", "a_total 1\n", "before the TYPE"},
        BadText{"HelpAlone", "# HELP a_total Help.\n", "without its TYPE"},
        BadText{"Twice", FAMILY FAMILY, "was there already"},
        BadText{"SeriesTwice", FAMILY "a_total{x=\"1\",y=\"2\"} 1\na_total{y=\"2\",x=\"1\"} 2\n",
                "a series that was there"},
        BadText{"Stranger", FAMILY "b_total 1\n", "another family"},
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

/// The value of the one series of that name with those labels; -1: there is none.
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

TEST(ExpositionTest, IsSoundWhateverNamesHold) {
  DecisionCounters one;
  DecisionCounters two;
  using Outcome = DecisionCounters::Outcome;
  one.Count(1, Outcome::kDenied, DecidedBy::kStore);
  two.Count(1, Outcome::kDenied, DecidedBy::kStore);
  two.Count(0, Outcome::kShadowDenied, DecidedBy::kStore);
  const std::array<const DecisionCounters*, 2> counters = {&one, &two};
  const std::string odd = "a\\b\"c\nd{}=,";
  MetricsReport snapshot;
  snapshot.version = odd;
  snapshot.rule_names = {"(other)", odd};
  snapshot.decisions = counters;
  snapshot.doors = {{.name = "api", .responses = {{0, 5, 0, 3, 2}}}, {.name = "resp"}};
  snapshot.more = {{"h",
                    "Help.",
                    MetricFamily::Type::kHistogram,
                    {{1, {{"x", odd}, {"le", "0.5"}}, "_bucket"},
                     {3, {{"x", odd}, {"le", "+Inf"}}, "_bucket"},
                     {2.5, {{"x", odd}}, "_sum"},
                     {3, {{"x", odd}}, "_count"}}}};
  const MetricsText text = MetricsText::Read(Expose(snapshot));
  EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
  EXPECT_EQ(ValueOf(text, "tidegate_build_info", {{"version", odd}}), 1);
  EXPECT_EQ(ValueOf(text, "tidegate_decisions_total",
                    {{"rule", odd}, {"outcome", "denied"}, {"decided_by", "store"}}),
            2)
      << "the sum over reactors";
  EXPECT_EQ(ValueOf(text, "h", {{"x", odd}}, "h_count"), 3);
}

TEST(ExpositionTest, AnswersAreThereFromTheStartWhereADoorHasSuch) {
  MetricsReport snapshot;
  snapshot.doors = {{.name = "api", .responses = {{9, 0, 0, 0, 0}}}, {.name = "resp"}};
  const MetricsText text = MetricsText::Read(Expose(snapshot));
  const auto* const family = text.Find("tidegate_responses_total");
  ASSERT_NE(family, nullptr);
  EXPECT_EQ(family->samples.size(), 4U);
  EXPECT_EQ(ValueOf(text, "tidegate_responses_total", {{"door", "api"}, {"code", "5xx"}}), 0);
}

TEST(ExpositionTest, SaysWhichConfigurationIsInForce) {
  MetricsReport snapshot;
  const auto successful = [&] {
    return ValueOf(MetricsText::Read(Expose(snapshot)), "tidegate_config_last_reload_successful",
                   {});
  };
  EXPECT_EQ(successful(), 1);
  snapshot.last_reload_refused = true;
  EXPECT_EQ(successful(), 0);
}

TEST(ProcessMetricsTest, TellWhatEveryLibraryTells) {
  const MetricsText text = MetricsText::Read(Expose({}));
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

// SPDX-License-Identifier: Apache-2.0
#include "unit/config/config_reading.hpp"

namespace tidegate {
namespace {

using KeyNames = Config::Metrics::KeyNames;

TEST(MetricsConfigTest, CollectsMetricsByDefaultAndHashesNames) {
  const Config::Metrics metrics = Good("rules: []\n").metrics;
  EXPECT_TRUE(metrics.decisions);
  EXPECT_EQ(metrics.hot_keys, 100u);
  EXPECT_EQ(metrics.key_names, KeyNames::kHashed);
}

TEST(MetricsConfigTest, ReadsEveryKey) {
  const Config::Metrics metrics =
      Good("metrics:\n  decisions: false\n  hot_keys: 1000\n  key_names: plain\n").metrics;
  EXPECT_FALSE(metrics.decisions);
  EXPECT_EQ(metrics.hot_keys, 1000u);
  EXPECT_EQ(metrics.key_names, KeyNames::kPlain);
  EXPECT_EQ(Good("metrics: { hot_keys: 0 }\n").metrics.hot_keys, 0u);
  EXPECT_EQ(Good("metrics: { key_names: hashed }\n").metrics, Config::Metrics{});
}

TEST(MetricsConfigTest, RejectsInvalidTemplates) {
  const BadCase cases[] = {
      {"metrics: { hot_keys: 1001 }\n", "1:22: error: metrics.hot_keys: "},
      {"metrics: { hot_keys: -1 }\n", "1:22: error: metrics.hot_keys: "},
      {"metrics: { hot_keys: off }\n", "1:22: error: metrics.hot_keys: "},
      {"metrics: { hot_keys: \"10\" }\n", "1:22: error: metrics.hot_keys: "},
      {"metrics: { decisions: 1 }\n", "1:23: error: metrics.decisions: "},
      {"metrics: { decisions: yes }\n", "1:23: error: metrics.decisions: "},
      {"metrics: { key_names: plainn }\n",
       "1:23: error: metrics.key_names: should be `hashed` or `plain`, but is `plainn`"},
      {"metrics: { keynames: plain }\n", "did you mean `key_names`?"},
      {"metrics: { hot_keys: 1, hot_keys: 2 }\n", "hot_keys"},
      {"metrics: on\n", "1:10: error: metrics: "},
      {"metrics: []\n", "1:10: error: metrics: "},
      {"metric: {}\n", "did you mean `metrics`?"},
  };
  for (const BadCase& bad : cases) ExpectProblem(bad);
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
// metrics: what is counted per decision.
#include "rules/config_sections.hpp"

namespace tidegate {
namespace {

using Metrics = Config::Metrics;
using KeyNames = Metrics::KeyNames;

constexpr std::int64_t kMostHotKeys = 1000;
constexpr std::array<Choice<KeyNames>, 2> kKeyNames = {
    {{"hashed", KeyNames::kHashed}, {"plain", KeyNames::kPlain}}};

constexpr std::array<ConfigKey<Metrics>, 3> kMetricsKeys = {{
    {"decisions", [](const ConfigValue& v, Metrics& m) { Put(m.decisions, v.Bool()); }},
    {"hot_keys",
     [](const ConfigValue& v, Metrics& m) {
       if (const auto n = v.Integer(0, kMostHotKeys)) m.hot_keys = static_cast<std::size_t>(*n);
     }},
    {"key_names", [](const ConfigValue& v, Metrics& m) { Put(m.key_names, v.OneOf(kKeyNames)); }},
}};

}  // namespace

void ReadMetrics(const ConfigValue& value, ConfigDraft& draft) {
  ReadSection(value, kMetricsKeys, draft.config.metrics);
}

void AppendMetricsKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("metrics", kMetricsKeys));
}

}  // namespace tidegate

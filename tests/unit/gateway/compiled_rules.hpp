// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "config/config.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// Compiles a configuration in YAML.
inline std::shared_ptr<const RuleSet> CompiledRules(std::string_view yaml) {
  ConfigReading reading = ParseConfig(yaml);
  EXPECT_TRUE(reading.config.has_value()) << yaml;
  Problems problems;
  return RuleSet::Compile(
      reading.config->rule_set(),
      std::make_shared<Identifier>(Identifier::Options{.hmac_key = "0123456789abcdef"}), problems);
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "config/config.hpp"

namespace tidegate {

inline std::optional<std::string> TestEnvironment(const std::string& name) {
  if (name == "PORT") return "9999";
  if (name == "EMPTY") return "";
  if (name == "KEY") return "hunter2-hunter2-hunter2";
  if (name == "PATHLIKE") return "file:/etc/passwd";
  return std::nullopt;
}

inline ConfigReading Read(std::string_view yaml, const std::string& folder = "/nonexistent") {
  return ParseConfig(yaml, folder, TestEnvironment);
}

/// Returns the problems in the form that operators see, one on each line: `3:5: error:
/// rules[0].limit: ...`
inline std::string ProblemText(const ConfigReading& reading) {
  std::string text;
  for (const Problem& problem : reading.problems) {
    // Remove the empty file name and the colon behind it.
    text += problem.Text("").substr(problem.at.line > 0 ? 1 : 2) + "\n";
  }
  return text;
}

/// Returns the configuration that `yaml` describes. REQUIRES: `yaml` is valid.
inline Config Good(std::string_view yaml, const std::string& folder = "/nonexistent") {
  ConfigReading reading = Read(yaml, folder);
  EXPECT_TRUE(reading.config) << ProblemText(reading) << "in:\n" << yaml;
  return reading.config.value_or(Config{});
}

/// A configuration with one mistake, and the expected problem.
struct BadCase {
  std::string yaml;
  std::string expected;  ///< Beginning or part of a line of ProblemText().
};

inline void ExpectProblem(const BadCase& bad) {
  const ConfigReading reading = Read(bad.yaml);
  const bool placed = bad.expected.front() >= '0' && bad.expected.front() <= '9';
  const std::string shown = bad.yaml.substr(0, 300);
  EXPECT_FALSE(reading.config) << shown;
  EXPECT_THAT("\n" + ProblemText(reading), testing::HasSubstr((placed ? "\n" : "") + bad.expected))
      << "in:\n"
      << shown;
}

}  // namespace tidegate

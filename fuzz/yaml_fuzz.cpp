// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace tidegate {
namespace {

/// Isolates the test from the machine: no variable is set, and no secret file or included file is
/// found.
std::optional<std::string> NoEnvironment(const std::string&) { return std::nullopt; }

[[noreturn]] void Fail(const char* what, const Problem& problem) {
  std::fprintf(stderr, "%s: %s\n", what, problem.Text("input").c_str());
  std::abort();
}

/// Returns the length of each line without its newline.
std::vector<std::size_t> LineLengths(std::string_view text) {
  std::vector<std::size_t> lengths(1, 0);
  for (const char c : text) {
    if (c == '\n') {
      lengths.push_back(0);
    } else {
      ++lengths.back();
    }
  }
  return lengths;
}

void Check(std::string_view yaml) {
  const ConfigReading reading = ParseConfig(yaml, "/nonexistent", NoEnvironment, Includes::kRefuse);
  const auto lengths = LineLengths(yaml);
  bool errors = false;
  for (const Problem& problem : reading.problems) {
    errors = errors || problem.severity == Problem::Severity::kError;
    if (problem.message.empty()) Fail("no message", problem);
    for (const char c : problem.Text("input")) {
      if (static_cast<unsigned char>(c) < 0x20) Fail("a control character", problem);
    }
    if (problem.at == Position{}) continue;  // The problem concerns the file as a whole.
    const auto line = static_cast<std::size_t>(problem.at.line);
    if (problem.at.line < 1 || problem.at.column < 1 || line > lengths.size() ||
        static_cast<std::size_t>(problem.at.column) > lengths[line - 1] + 1) {
      Fail("a place outside the file", problem);
    }
  }
  if (reading.config.has_value() == errors) {
    std::fprintf(stderr, "the result has both a configuration and an error, or neither\n");
    std::abort();
  }
}

}  // namespace
}  // namespace tidegate

/// Reads the bytes as a configuration file: the result is either a configuration or an error with a
/// reason.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tidegate::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}

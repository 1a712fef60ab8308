// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tidegate::cli {

/// What is wrong with a command line that `app` could not take, and what to write instead: one
/// line. `first`: its first word, empty if there is none.
[[nodiscard]] std::string MistakeText(const CLI::App& app, const CLI::ParseError& error,
                                      const std::string& first);

}  // namespace tidegate::cli

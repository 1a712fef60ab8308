// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tidegate::cli {

/// Help whose usage line tells what is needed: `RULE (IDENTITY | --key KEY | ...)`.
class Usage : public CLI::Formatter {
 public:
  /// Of a command, on one line: `tidegate decide [OPTIONS] RULE IDENTITY`.
  [[nodiscard]] static std::string LineOf(const CLI::App& command);
  /// The first example of its footer; empty: there is none.
  [[nodiscard]] static std::string ExampleOf(const CLI::App& command);

  std::string make_option_usage(const CLI::Option* option) const override;
};

}  // namespace tidegate::cli

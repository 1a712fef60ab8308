// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/demo_ports.hpp"
#include "rules/config.hpp"

namespace tidegate::cli {

struct ServeOptions {
  std::string config;  ///< A file; empty with `demo`.
  bool demo = false;
  DemoPorts demo_ports = {};
  int threads = 0;  ///< 0: one per core.
  std::optional<Config::Log::Format> log_format;
};

/// `tidegate serve`: until SIGTERM or SIGINT. Returns an exit code.
[[nodiscard]] int Serve(const ServeOptions& options);

/// The configuration of `--demo`: examples/demo.yaml.
[[nodiscard]] std::string_view DemoConfig() noexcept;

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/http_exchange.hpp"
#include "rules/problem.hpp"

namespace tidegate {

struct AdminContext;

/// The outcome of a reload.
struct ReloadReport {
  enum class Outcome : std::uint8_t {
    kApplied,
    kRefused,   ///< The new configuration has errors: the old one stays in force.
    kNoFile,    ///< The configuration in force was not read from a file.
    kStopping,  ///< The server is shutting down.
  };

  Outcome outcome = Outcome::kNoFile;
  std::size_t rules = 0;  ///< Number of rules in force from now on.
  std::vector<std::string> needs_restart = {};
  Problems problems = {};
};

/// Reloads the configuration for the operator `by` and later reports the outcome, on any thread.
using Reloader =
    std::function<void(const std::string& by, std::function<void(const ReloadReport&)>)>;

/// Reloads the configuration for the operator `by`, and records it. Answers the exchange when the
/// new configuration is in force on every reactor, or was rejected.
void ReloadFor(AdminContext& context, net::HttpExchange& exchange, const std::string& by);

}  // namespace tidegate

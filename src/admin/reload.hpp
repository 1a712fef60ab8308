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

/// What became of a configuration that was to be read again.
struct ReloadReport {
  enum class Outcome : std::uint8_t {
    kApplied,
    kRefused,   ///< It has errors: the old one stays in force.
    kNoFile,    ///< What is in force was not read from one.
    kStopping,  ///< It would not be used any more.
  };

  Outcome outcome = Outcome::kNoFile;
  std::size_t rules = 0;  ///< In force from now on.
  std::vector<std::string> needs_restart = {};
  Problems problems = {};
};

/// Reads the configuration again for somebody and says later what became of it, on whatever thread.
using Reloader =
    std::function<void(const std::string& by, std::function<void(const ReloadReport&)>)>;

/// Has the configuration read again for an operator, `by` whom is written down. Answers the
/// exchange once it is in force on every thread, or was refused.
void ReloadFor(AdminContext& context, net::HttpExchange& exchange, const std::string& by);

}  // namespace tidegate

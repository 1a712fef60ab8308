// SPDX-License-Identifier: Apache-2.0
#include "cli/check_config.hpp"

#include <algorithm>
#include <ostream>

#include "cli/exit.hpp"
#include "server/server.hpp"

namespace tidegate::cli {

int CheckConfig(const CheckOptions& options, std::ostream& out) {
  ConfigReading reading = LoadConfig(options.file);
  std::size_t rules = 0;
  if (reading.config) {
    rules = reading.config->rules.size();
    Server::Check(*reading.config, reading.problems);
  }
  for (const Problem& problem : reading.problems) out << problem.Text(options.file) << '\n';
  const auto count = [&](Problem::Severity severity) {
    return std::ranges::count(reading.problems, severity, &Problem::severity);
  };
  const auto errors = count(Problem::Severity::kError);
  const auto warnings = count(Problem::Severity::kWarning);
  out << options.file << ": ";
  if (errors == 0) {
    out << "good, " << rules << (rules == 1 ? " rule" : " rules");
  } else {
    out << errors << (errors == 1 ? " error" : " errors");
  }
  if (warnings != 0) out << ", " << warnings << (warnings == 1 ? " warning" : " warnings");
  out << '\n';
  return errors != 0 || (options.strict && warnings != 0) ? kUsage : kOk;
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/check_config.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <ostream>

#include "cli/exit.hpp"
#include "server/snapshot_compiler.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;

void PrintJson(const std::string& file, const Problems& problems, std::size_t rules, bool good,
               std::ostream& out) {
  json::array list;
  for (const Problem& problem : problems) {
    const bool error = problem.severity == Problem::Severity::kError;
    json::object& entry =
        list.emplace_back(json::object{{"severity", error ? "error" : "warning"}}).get_object();
    if (!problem.at.file.is_main()) entry["file"] = json::string(problem.at.file.path());
    entry["line"] = problem.at.line;
    entry["column"] = problem.at.column;
    entry["where"] = problem.where;
    entry["message"] = problem.message;
  }
  out << json::serialize(json::object{
             {"file", file}, {"good", good}, {"rules", rules}, {"problems", std::move(list)}})
      << '\n';
}

}  // namespace

int CheckConfig(const CheckOptions& options, std::ostream& out) {
  ConfigReading reading = LoadConfig(options.file);
  std::size_t rules = 0;
  if (reading.config) {
    rules = reading.config->rules.size();
    SnapshotCompiler::Check(*reading.config, reading.problems);
  }
  const auto count = [&](Problem::Severity severity) {
    return std::ranges::count(reading.problems, severity, &Problem::severity);
  };
  const auto errors = count(Problem::Severity::kError);
  const auto warnings = count(Problem::Severity::kWarning);
  const bool good = errors == 0 && (!options.strict || warnings == 0);
  const int exit = good ? kOk : kUsage;
  if (options.json) {
    PrintJson(options.file, reading.problems, rules, good, out);
    return exit;
  }
  for (const Problem& problem : reading.problems) out << problem.Text(options.file) << '\n';
  out << options.file << ": ";
  if (errors == 0) {
    out << "good, " << rules << (rules == 1 ? " rule" : " rules");
  } else {
    out << errors << (errors == 1 ? " error" : " errors");
  }
  if (warnings != 0) out << ", " << warnings << (warnings == 1 ? " warning" : " warnings");
  out << '\n';
  return exit;
}

}  // namespace tidegate::cli

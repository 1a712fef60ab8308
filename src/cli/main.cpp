// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/report_json.hpp"
#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/serve.hpp"
#include "server/snapshot_compiler.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;

Result<Algorithm> ReadAlgorithm(const std::string& text) {
  if (const auto algorithm = ParseAlgorithm(text)) return *algorithm;
  std::array<std::string_view, kAlgorithms> names;
  for (int i = 0; i < kAlgorithms; ++i) {
    names[static_cast<std::size_t>(i)] = Name(static_cast<Algorithm>(i));
  }
  return Failure(ErrorCode::kBadArgument,
                 "\"" + text + "\" is not an algorithm: choose " + OneOf(names));
}

Result<Config::Log::Format> ReadLogFormat(const std::string& text) {
  if (text == "text") return Config::Log::Format::kText;
  if (text == "json") return Config::Log::Format::kJson;
  return Failure(ErrorCode::kBadArgument,
                 "\"" + text + "\" is not a log format: choose text or json");
}

Result<std::uint16_t> ReadDemoPort(const std::string& text) {
  const auto port = ReadCount(text);
  if (!port || *port < 0 || *port > 65535) {
    return Failure(ErrorCode::kBadArgument,
                   "\"" + text + "\" is not a port: name one from 1 to 65535, or 0 for a free one");
  }
  return static_cast<std::uint16_t>(*port);
}

int Demo(const DemoOptions& options, const Console& console) {
  if (const auto done = RunDemo(options, console.out); !done) {
    console.err << "tidegate demo: " << done.error().message << '\n';
    return kUsage;
  }
  return kOk;
}

void AddDemo(CLI::App& app, Action& action) {
  const Command<DemoOptions> command(app, "demo",
                                     "Show how each algorithm decides, without waiting");
  CLI::App& demo = command.app;
  DemoOptions& options = *command.options;
  AddParsed(
      demo, "--algorithm", options.algorithm, ReadAlgorithm,
      "Show only this algorithm: token_bucket, sliding_log, sliding_window, fixed_window, gcra or "
      "concurrency (default: all six)",
      "NAME");
  AddParsed(demo, "--limit", options.limit, ReadCount,
            "Requests per period; places for concurrency (default: 3)", "N");
  AddParsed(demo, "--period", options.period, ParseDuration,
            "Period of the limit; the lease time for concurrency (default: 1s)", "DURATION");
  AddParsed(demo, "--burst", options.burst, ReadCount,
            "Capacity of token_bucket and gcra (default: the limit)", "N");
  AddParsed(demo, "--every", options.every, ParseDuration,
            "The time between two requests (default: 100ms)", "DURATION");
  AddParsed(demo, "--requests", options.requests,
            CountWithin(1, kMaxDemoRequests,
                        "send between 1 and " + std::to_string(kMaxDemoRequests) + " requests"),
            "How many requests to send (default: 12)", "N");
  demo.footer(
      "A DURATION is a whole number and a unit: 250us, 100ms, 1s, 5m, 24h, 7d.\n"
      "\n"
      "Example: five at once, then one every 500 ms\n"
      "  tidegate demo --algorithm token_bucket --limit 2 --burst 5 --every 100ms");
  command.Does(action, Demo);
}

void AddServe(CLI::App& app, Action& action) {
  const Command<ServeOptions> command(app, "serve", "Serve decisions over HTTP");
  CLI::App& serve = command.app;
  ServeOptions& options = *command.options;
  CLI::Option* const config =
      serve.add_option("-c,--config", options.config, "The configuration, a YAML file")
          ->type_name("FILE");
  CLI::Option* const demo = serve.add_flag(
      "--demo", options.demo, "Serve example rules instead of a file, and print commands to try");
  demo->excludes(config);
  const auto add_port = [&](const char* name, std::optional<std::uint16_t>& port,
                            const char* help) {
    AddParsed(serve, name, port, ReadDemoPort, help, "PORT")->needs(demo);
  };
  DemoPorts& ports = options.demo_ports;
  add_port("--port", ports.gateway,
           "Port of the demo's gateway; 0: any free port (default: 8080, or a free port if it is "
           "taken)");
  add_port("--api-port", ports.api,
           "Port of the demo's HTTP API (default: 8081, or a free port if it is taken)");
  add_port("--resp-port", ports.resp,
           "Port of the demo for Redis clients (default: 6380, or a free port if it is taken)");
  add_port("--admin-port", ports.admin,
           "Port of the demo's admin API (default: 9180, or a free port if it is taken)");
  AddNumber(serve, "--threads", options.threads, 1, 1024,
            "Number of threads that serve (default: one per core)");
  AddParsed(serve, "--log-format", options.log_format, ReadLogFormat,
            "Format of the log: text or json (default: the configuration's, or text)", "FORMAT");
  serve.footer(
      "A change of the file, SIGHUP or `tidegate reload` reloads the rules; SIGTERM finishes the "
      "requests in progress and exits.\n"
      "\n"
      "Examples:\n"
      "  tidegate serve --config tidegate.yaml --threads 2\n"
      "  tidegate serve --demo --port 9000");
  command.Does(action, [](const ServeOptions& given, const Console& console) {
    if (!given.config.empty() || given.demo) return Serve(given);
    console.err << "tidegate serve: name a configuration with --config, or try --demo\n";
    return static_cast<int>(kUsage);
  });
}

struct CheckOptions {
  std::string file;
  bool strict = false;  ///< Treat warnings as errors.
  bool json = false;    ///< Print one object instead of lines.
};

/// Prints one line per problem, then a verdict.
int CheckConfig(const CheckOptions& options, const Console& console) {
  ConfigReading reading = LoadConfig(options.file);
  std::int64_t rules = 0;
  if (reading.config) {
    rules = std::ssize(reading.config->rules);
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
    json::object report{{"file", options.file}, {"good", good}, {"rules", rules}};
    json::array& list = report["problems"].emplace_array();
    for (const Problem& problem : reading.problems) list.push_back(ProblemJson(problem, "where"));
    console.out << json::serialize(report) << '\n';
    return exit;
  }
  for (const Problem& problem : reading.problems) console.out << problem.Text(options.file) << '\n';
  console.out << options.file << ": "
              << (errors == 0 ? "good, " + Plural(rules, "rule") : Plural(errors, "error"))
              << (warnings == 0 ? "" : ", " + Plural(warnings, "warning")) << '\n';
  return exit;
}

void AddCheckConfig(CLI::App& app, Action& action) {
  const Command<CheckOptions> command(app, "check-config",
                                      "List the problems of a configuration and their places");
  CLI::App& check = command.app;
  check.add_option("file", command.options->file, "The configuration")
      ->required()
      ->type_name("FILE");
  check.add_flag("--strict", command.options->strict, "Fail on warnings too");
  check.add_flag("--json", command.options->json, "Print one JSON object instead of lines");
  check.footer(
      "Exits with 0 if a server would start with it, else with 2.\n"
      "\n"
      "Example:\n"
      "  tidegate check-config tidegate.yaml");
  command.Does(action, CheckConfig);
}

/// Returns kRuntime if the output of a successful command could not be written.
int Flushed(int code) {
  if (std::cout.flush() || code != kOk) return code;
  std::cerr << "tidegate: the output could not be written; is the disk full?\n";
  return kRuntime;
}

/// Returns the arguments, with `help`, `help COMMAND` and `version` replaced by options.
std::vector<std::string> WordsOf(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) return words;
  if (words.front() == "version") words.front() = "--version";
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

int Main(int argc, const char* const* argv) {
  CLI::App app{
      "Tidegate decides whether a request may pass: a rate limiter for one process or a "
      "fleet.",
      "tidegate"};
  app.set_version_flag("--version", "tidegate " TIDEGATE_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<UsageFormatter>());  // Set before the commands, which inherit it.
  app.footer(
      "Example:\n"
      "  tidegate serve --demo\n"
      "`tidegate COMMAND --help` describes a command.");
  Action action;
  AddServe(app, action);
  AddCheckConfig(app, action);
  AddClientCommands(app, action);
  AddDemo(app, action);

  std::vector<std::string> words = WordsOf(argc, argv);
  const std::string first = words.empty() ? std::string{} : words.front();
  std::ranges::reverse(words);  // CLI11 takes them from the end.
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    const bool unknown = app.get_subcommands().empty() && !first.starts_with('-');
    if (help && !unknown) {
      (void)app.exit(error);  // Prints the help, or the version.
      return Flushed(kOk);
    }
    // The general help would look like the help of an unknown command. CLI11 has an exit code for
    // each kind of mistake; a script needs only one.
    std::cerr << (help ? UsageError(app, CLI::RequiredError("COMMAND"), first)
                       : UsageError(app, error, first))
              << '\n';
    return kUsage;
  }
  const int code = action();
  return app.got_subcommand("serve") ? code : Flushed(code);
}

}  // namespace
}  // namespace tidegate::cli

int main(int argc, char** argv) {
  try {
    return tidegate::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "tidegate: " << error.what() << '\n';
    return 1;
  }
}

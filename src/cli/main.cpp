// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/check_config.hpp"
#include "cli/command_line.hpp"
#include "cli/demo.hpp"
#include "cli/exit.hpp"
#include "cli/mistake.hpp"
#include "cli/serve.hpp"
#include "cli/usage.hpp"
#include "core/refuse.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

Result<Algorithm> ReadAlgorithm(const std::string& text) {
  if (const auto algorithm = ParseAlgorithm(text)) return *algorithm;
  std::string message = "\"" + text + "\" is not an algorithm: choose one of";
  for (int i = 0; i < kAlgorithms; ++i) {
    message += i == 0 ? " " : i + 1 == kAlgorithms ? " or " : ", ";
    message += Name(static_cast<Algorithm>(i));
  }
  return Refuse(ErrorCode::kBadQuota, std::move(message));
}

Result<std::optional<Config::Log::Format>> ReadLogFormat(const std::string& text) {
  if (text == "text") return Config::Log::Format::kText;
  if (text == "json") return Config::Log::Format::kJson;
  return Refuse(ErrorCode::kBadQuota, "\"" + text + "\" is not a log format: choose text or json");
}

Result<std::optional<std::uint16_t>> ReadDemoPort(const std::string& text) {
  const auto port = ReadCount(text);
  if (!port || *port < 0 || *port > 65535) {
    return Refuse(ErrorCode::kBadQuota,
                  "\"" + text + "\" is not a port: name one from 1 to 65535, or 0 for a free one");
  }
  return static_cast<std::uint16_t>(*port);
}

Result<std::int64_t> ReadRequests(const std::string& text) {
  auto count = ReadCount(text);
  if (count && (*count < 1 || *count > kMaxDemoRequests)) {
    return Refuse(ErrorCode::kBadQuota, text + " is out of range: send between 1 and " +
                                            std::to_string(kMaxDemoRequests) + " requests");
  }
  return count;
}

void AddDemo(CLI::App& app, DemoOptions& options) {
  CLI::App& demo = *app.add_subcommand("demo", "Show how each algorithm decides, without waiting");
  AddParsed(demo, "--algorithm", options.algorithm, ReadAlgorithm,
            "Only this one: token_bucket, sliding_log, sliding_window, fixed_window, gcra or "
            "concurrency (default: all six)",
            "NAME");
  AddParsed(demo, "--limit", options.limit, ReadCount,
            "Requests per period; places for concurrency (default: 3)", "N");
  AddParsed(demo, "--period", options.period, ParseDuration,
            "What the limit counts over; the lease time for concurrency (default: 1s)", "DURATION");
  AddParsed(demo, "--burst", options.burst, ReadCount,
            "Capacity of token_bucket and gcra (default: the limit)", "N");
  AddParsed(demo, "--every", options.every, ParseDuration,
            "The time between two requests (default: 100ms)", "DURATION");
  AddParsed(demo, "--requests", options.requests, ReadRequests,
            "How many requests to send (default: 12)", "N");
  demo.footer(
      "A DURATION is a whole number and a unit: 250us, 100ms, 1s, 5m, 24h, 7d.\n"
      "\n"
      "Example: five at once, then one every 500 ms\n"
      "  tidegate demo --algorithm token_bucket --limit 2 --burst 5 --every 100ms");
}

void AddServe(CLI::App& app, ServeOptions& options) {
  CLI::App& serve = *app.add_subcommand("serve", "Serve decisions over HTTP");
  CLI::Option* const config =
      serve.add_option("-c,--config", options.config, "The configuration, a YAML file")
          ->type_name("FILE");
  CLI::Option* const demo = serve.add_flag(
      "--demo", options.demo, "A few telling rules instead of a file, and what to try on them");
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
  serve.add_option("--threads", options.threads, "Reactors (default: one per core)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  AddParsed(serve, "--log-format", options.log_format, ReadLogFormat,
            "text or json (default: as the configuration says, or text)", "FORMAT");
  serve.footer(
      "A change of the file, SIGHUP or `tidegate reload` reloads the rules; SIGTERM finishes what "
      "is under way.\n"
      "\n"
      "Examples:\n"
      "  tidegate serve --config tidegate.yaml --threads 2\n"
      "  tidegate serve --demo --port 9000");
}

void AddCheckConfig(CLI::App& app, CheckOptions& options) {
  CLI::App& check =
      *app.add_subcommand("check-config", "Say what is wrong with a configuration, and where");
  check.add_option("file", options.file, "The configuration")->required()->type_name("FILE");
  check.add_flag("--strict", options.strict, "Fail on warnings too");
  check.add_flag("--json", options.json, "Print one JSON object instead of lines");
  check.footer(
      "Exits with 0 if a server would start with it, else with 2.\n"
      "\n"
      "Example:\n"
      "  tidegate check-config tidegate.yaml");
}

int Demo(const DemoOptions& options) {
  if (const auto done = RunDemo(options, std::cout); !done) {
    std::cerr << "tidegate demo: " << done.error().message << '\n';
    return kUsage;
  }
  return kOk;
}

/// Done is only what was written, too: a full disk must not pass for an answer.
int Flushed(int code) {
  if (std::cout.flush() || code != kOk) return code;
  std::cerr << "tidegate: the output could not be written; is the disk full?\n";
  return kRuntime;
}

/// What people write who do not know this program yet is understood: `help`, `help COMMAND` and
/// `version`.
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
  app.formatter(std::make_shared<Usage>());  // Before the commands: they inherit it.
  app.footer(
      "Example:\n"
      "  tidegate serve --demo\n"
      "`tidegate COMMAND --help` says more about a command.");
  ServeOptions serve;
  AddServe(app, serve);
  CheckOptions check;
  AddCheckConfig(app, check);
  Action action;
  AddApiCommands(app, action);
  AddAdminCommands(app, action);
  DemoOptions demo;
  AddDemo(app, demo);

  std::vector<std::string> words = WordsOf(argc, argv);
  const std::string first = words.empty() ? std::string{} : words.front();
  std::ranges::reverse(words);  // CLI11 takes them from the end.
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      const bool unknown = app.get_subcommands().empty() && !first.starts_with('-');
      if (!unknown) {
        (void)app.exit(error);  // Help, or the version.
        return Flushed(kOk);
      }
      // Help of all for a command that there is not would pass for its own.
      std::cerr << MistakeText(app, CLI::RequiredError("COMMAND"), first) << '\n';
      return kUsage;
    }
    // CLI11 has a code of its own for each mistake; a script needs only one.
    std::cerr << MistakeText(app, error, first) << '\n';
    return kUsage;
  }
  if (app.got_subcommand("serve")) {
    if (serve.config.empty() && !serve.demo) {
      std::cerr << "tidegate serve: name a configuration with --config, or try --demo\n";
      return kUsage;
    }
    return Serve(serve);
  }
  if (app.got_subcommand("check-config")) return Flushed(CheckConfig(check, std::cout));
  if (action) return Flushed(action());
  return Flushed(Demo(demo));
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

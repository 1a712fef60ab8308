// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "cli/check_config.hpp"
#include "cli/decide.hpp"
#include "cli/demo.hpp"
#include "cli/exit.hpp"
#include "cli/serve.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// An option whose text `parse` turns into a value or refuses with a sentence.
template <class T, class Parse>
void AddParsed(CLI::App& app, const std::string& name, T& value, Parse parse,
               const std::string& help, const std::string& type) {
  app.add_option_function<std::string>(
         name,
         [name, &value, parse](const std::string& text) {
           auto parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
           value = *parsed;
         },
         help)
      ->type_name(type);
}

std::unexpected<Error> Refuse(std::string why) {
  return std::unexpected(Error{ErrorCode::kBadQuota, std::move(why)});
}

Result<Algorithm> ReadAlgorithm(const std::string& text) {
  if (const auto algorithm = ParseAlgorithm(text)) return *algorithm;
  std::string message = "\"" + text + "\" is not an algorithm: choose one of";
  for (int i = 0; i < kAlgorithms; ++i) {
    message += i == 0 ? " " : i + 1 == kAlgorithms ? " or " : ", ";
    message += Name(static_cast<Algorithm>(i));
  }
  return Refuse(std::move(message));
}

Result<std::optional<Config::Log::Format>> ReadLogFormat(const std::string& text) {
  if (text == "text") return Config::Log::Format::kText;
  if (text == "json") return Config::Log::Format::kJson;
  return Refuse("\"" + text + "\" is not a log format: choose text or json");
}

Result<std::int64_t> ReadCount(const std::string& text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc{} && rest == end) return count;
  return Refuse("\"" + text + "\" is not a whole number below 2^63, as 5 is");
}

Result<std::int64_t> ReadRequests(const std::string& text) {
  auto count = ReadCount(text);
  if (count && (*count < 1 || *count > kMaxDemoRequests)) {
    return Refuse(text + " is out of range: send between 1 and " +
                  std::to_string(kMaxDemoRequests) + " requests");
  }
  return count;
}

Result<std::int64_t> ReadCost(const std::string& text) {
  auto cost = ReadCount(text);
  if (cost && (*cost < 1 || *cost > kMaxCost)) {
    return Refuse(text + " is out of range: a cost is between 1 and 2147483647");
  }
  return cost;
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
  serve.add_option("--threads", options.threads, "Reactors (default: one per core)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  AddParsed(serve, "--log-format", options.log_format, ReadLogFormat,
            "text or json (default: as the configuration says, or text)", "FORMAT");
  serve.footer(
      "SIGHUP, or a change of the file, reloads the rules; SIGTERM finishes what is under way.\n"
      "\n"
      "Example:\n"
      "  tidegate serve --config tidegate.yaml --threads 2");
}

void AddCheckConfig(CLI::App& app, CheckOptions& options) {
  CLI::App& check =
      *app.add_subcommand("check-config", "Say what is wrong with a configuration, and where");
  check.add_option("file", options.file, "The configuration")->required()->type_name("FILE");
  check.add_flag("--strict", options.strict, "Fail on warnings too");
  check.footer(
      "Exits with 0 if a server would start with it, else with 2.\n"
      "\n"
      "Example:\n"
      "  tidegate check-config tidegate.yaml");
}

void AddDecide(CLI::App& app, DecideOptions& options) {
  CLI::App& decide = *app.add_subcommand("decide", "Ask a running server for one decision");
  decide.add_option("rule", options.rule, "The rule's id")->required()->type_name("RULE");
  decide.add_option("identity", options.identity, "Who is asking, as the rule counts")
      ->required()
      ->type_name("IDENTITY");
  AddParsed(decide, "--cost", options.cost, ReadCost, "What it costs (default: as the rule says)",
            "N");
  decide.add_option("--server", options.server, "Where it listens (default: 127.0.0.1:8081)")
      ->type_name("HOST:PORT");
  AddParsed(decide, "--timeout", options.timeout, ParseDuration,
            "How long to wait for the answer (default: 2s)", "DURATION");
  decide.add_flag("--peek", options.peek, "Only look: charge nothing");
  decide.add_flag("--json", options.json, "Print the server's answer as it came");
  decide.footer(
      "Exits with 0 if allowed, 1 if denied, 2 if the question makes no sense, 3 without an "
      "answer.\n"
      "\n"
      "Example: at most so many mails as the rule allows\n"
      "  tidegate decide mails alice && send-mail");
}

int Demo(const DemoOptions& options) {
  if (const auto done = RunDemo(options, std::cout); !done) {
    std::cerr << "tidegate demo: " << done.error().message << '\n';
    return kUsage;
  }
  if (!std::cout.flush()) {
    std::cerr << "tidegate demo: the output could not be written; is the disk full?\n";
    return kRuntime;
  }
  return kOk;
}

int Main(int argc, const char* const* argv) {
  CLI::App app{
      "Tidegate decides whether a request may pass: a rate limiter for one process or a "
      "fleet.",
      "tidegate"};
  app.set_version_flag("--version", "tidegate " TIDEGATE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Example:\n"
      "  tidegate serve --demo\n"
      "`tidegate COMMAND --help` says more about a command.");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string{"tidegate: "} + error.what() + "; `tidegate COMMAND --help` says more\n";
  });
  ServeOptions serve;
  AddServe(app, serve);
  CheckOptions check;
  AddCheckConfig(app, check);
  DecideOptions decide;
  AddDecide(app, decide);
  DemoOptions demo;
  AddDemo(app, demo);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError&) {
    std::cerr << "tidegate: ";
    if (argc > 1) std::cerr << '"' << argv[1] << "\" is no command; ";
    std::cerr
        << "say what to do, as in `tidegate serve --demo`; `tidegate --help` lists the commands\n";
    return kUsage;
  } catch (const CLI::ParseError& error) {
    // CLI11 has a code of its own for each mistake; a script needs only one.
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (app.got_subcommand("serve")) {
    if (serve.config.empty() && !serve.demo) {
      std::cerr << "tidegate serve: name a configuration with --config, or try --demo\n";
      return kUsage;
    }
    return Serve(serve);
  }
  if (app.got_subcommand("check-config")) return CheckConfig(check, std::cout);
  if (app.got_subcommand("decide")) return Decide(decide, std::cout, std::cerr);
  return Demo(demo);
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

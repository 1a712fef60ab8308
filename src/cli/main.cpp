// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "cli/demo.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// The exit codes of every subcommand.
enum Exit : int { kOk = 0, kRuntime = 1, kUsage = 2 };

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
      "  tidegate demo --limit 5 --every 50ms\n"
      "`tidegate COMMAND --help` says more about a command.");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string{"tidegate: "} + error.what() + "; `tidegate COMMAND --help` says more\n";
  });
  DemoOptions demo;
  AddDemo(app, demo);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError&) {
    std::cerr << "tidegate: ";
    if (argc > 1) std::cerr << '"' << argv[1] << "\" is no command; ";
    std::cerr << "say what to do, as in `tidegate demo`; `tidegate --help` lists the commands\n";
    return kUsage;
  } catch (const CLI::ParseError& error) {
    // CLI11 has a code of its own for each mistake; a script needs only one.
    return app.exit(error) == 0 ? kOk : kUsage;
  }
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

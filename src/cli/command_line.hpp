// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "tidegate/error.hpp"

namespace tidegate::cli {

/// The command to run once the command line has been read. Returns an exit code.
using Action = std::function<int()>;

/// Formats help whose usage line shows required arguments: `RULE (IDENTITY | --key KEY | ...)`.
struct UsageFormatter : CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override;
};

/// Returns one line that says what is wrong with a command line that `app` rejected, and what to
/// write instead. `first` is the first word of the command line; empty if there is none.
[[nodiscard]] std::string UsageError(const CLI::App& app, const CLI::ParseError& error,
                                     const std::string& first);

/// Adds an option. `parse` turns its text into a value, or rejects it with an error message.
template <class T, class Parse>
CLI::Option* AddParsed(CLI::App& app, const std::string& name, T& value, Parse parse,
                       const std::string& help, const std::string& type) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &value, parse](const std::string& text) {
            auto parsed = parse(text);
            if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
            value = *parsed;
          },
          help)
      ->type_name(type);
}

/// Turns the text of an option into a value; otherwise its Error says which values are allowed.
template <class T>
using Reader = std::function<Result<T>(const std::string& text)>;

/// Adds an option with a number from `least` to `most`.
template <class T>
CLI::Option* AddNumber(CLI::App& app, const std::string& name, T& value, T least, T most,
                       const std::string& help, const std::string& type = "N") {
  return app.add_option(name, value, help)->check(CLI::Range(least, most))->type_name(type);
}

/// A subcommand whose options live as long as the action that uses them. When the command line
/// names the subcommand, it becomes the action.
template <class Options>
struct Command {
  Command(CLI::App& parent, const std::string& name, const char* help)
      : app(*parent.add_subcommand(name, help)) {}

  CLI::App& app;
  std::shared_ptr<Options> options = std::make_shared<Options>();

  /// Sets what the subcommand does: `run(options, console)` returns an exit code.
  template <class Run>
  void Does(Action& action, Run run) const {
    app.callback([&action, shared = options, run] {
      action = [shared, run] { return run(*shared, StandardConsole()); };
    });
  }
};

[[nodiscard]] Result<std::int64_t> ReadCount(const std::string& text);
[[nodiscard]] Result<std::int64_t> ReadCost(const std::string& text);
/// Return a Reader of values from `least` to `most`. `bounds` describes both in error messages.
[[nodiscard]] Reader<std::int64_t> CountWithin(std::int64_t least, std::int64_t most,
                                               const std::string& bounds);
[[nodiscard]] Reader<Micros> DurationWithin(Micros least, Micros most, const std::string& bounds);
/// Rejects an empty address or file name. Most often it comes from a variable of a script that was
/// never set; the default in its place would be another server, or another token.
[[nodiscard]] Result<std::string> ReadNotEmpty(const std::string& text);

/// Adds the commands that send requests to a server. `action` becomes the command that is named.
void AddClientCommands(CLI::App& app, Action& action);

}  // namespace tidegate::cli

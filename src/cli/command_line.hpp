// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/admin_client.hpp"
#include "cli/whom.hpp"
#include "tidegate/error.hpp"

namespace tidegate::cli {

/// What is to be done once the command line has been read. Returns an exit code.
using Action = std::function<int()>;

/// An option whose text `parse` turns into a value or refuses with a sentence.
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

[[nodiscard]] Result<std::int64_t> ReadCount(const std::string& text);
[[nodiscard]] Result<std::int64_t> ReadCost(const std::string& text);
/// A duration from `least` to `most`; `words` tell these two.
[[nodiscard]] Result<Micros> ReadWithin(const std::string& text, Micros least, Micros most,
                                        const std::string& words);
/// A place or a file's name. An empty one is most often a variable of a script that was never set:
/// the default in its stead would ask another server, or nobody's token.
[[nodiscard]] Result<std::string> ReadNotEmpty(const std::string& text);

/// `--token-file`, `--timeout` and `--json`.
void AddAskOptions(CLI::App& app, AskOptions& options);
/// `--ca-file`, `--cert-file` and `--key-file`.
void AddTlsOptions(CLI::App& app, TlsFiles& files);
/// All of these and `--admin`.
void AddAdminOptions(CLI::App& app, AskOptions& options);
/// RULE, IDENTITY, `--key` and `--part`. Returns RULE.
CLI::Option* AddWhom(CLI::App& app, Whom& whom);

/// The commands that ask the admin port; that of the one which is named becomes `action`.
void AddAdminCommands(CLI::App& app, Action& action);
/// `decide` and `bench`.
void AddApiCommands(CLI::App& app, Action& action);

}  // namespace tidegate::cli

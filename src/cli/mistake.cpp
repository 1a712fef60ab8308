// SPDX-License-Identifier: Apache-2.0
#include "cli/mistake.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/shown_text.hpp"
#include "cli/usage.hpp"
#include "rules/nearest.hpp"

namespace tidegate::cli {
namespace {

/// What is left over, the first of it: what follows may only be its value.
std::string Unexpected(const CLI::App& command, const std::string& word) {
  if (!word.starts_with('-')) return "\"" + Shown(word) + "\" is one word too many";
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* const option :
       command.get_options([](const CLI::Option* each) { return each->nonpositional(); })) {
    for (const std::string& each : option->get_lnames()) names.push_back("--" + each);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return "there is no option " + Shown(name) + DidYouMean(name, candidates);
}

std::string NoCommand(const CLI::App& app, const std::string& first) {
  constexpr const char* kHelp = "`tidegate --help` lists the commands";
  if (first.empty())
    return std::string("tidegate: say what to do, as in `tidegate serve --demo`; ") + kHelp;
  if (first.starts_with('-')) {
    const std::string wrong = Unexpected(app, first);
    return "tidegate: " + wrong + (wrong.ends_with('?') ? " " : "; ") + kHelp;
  }
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) {
    names.push_back(command->get_name());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string meant = DidYouMean(first, candidates);
  return "tidegate: \"" + Shown(first) + "\" is no command" +
         (meant.empty() ? "; say what to do, as in `tidegate serve --demo`; " : meant + " ") +
         kHelp;
}

/// `RULE and IDENTITY are missing`; empty: what is missing is something else.
std::string Missing(const CLI::App& command) {
  std::string text;
  std::size_t count = 0;
  for (const CLI::Option* const option : command.get_options(
           [](const CLI::Option* each) { return each->get_required() && each->count() == 0; })) {
    text += (count++ == 0 ? "" : " and ") +
            (option->get_positional() ? option->get_type_name() : option->get_name());
  }
  return count == 0 ? text : text + (count == 1 ? " is missing" : " are missing");
}

std::string WhatIsWrong(const CLI::App& command, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    if (const std::string missing = Missing(command); !missing.empty()) {
      const std::string example = Usage::ExampleOf(command);
      return missing + ": write " + Usage::LineOf(command) +
             (example.empty() ? "" : ", as in `" + example + "`");
    }
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !command.remaining().empty()) {
    return Unexpected(command, command.remaining().front());
  }
  return Shown(error.what());
}

}  // namespace

std::string MistakeText(const CLI::App& app, const CLI::ParseError& error,
                        const std::string& first) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) {
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return NoCommand(app, first);
    return "tidegate: " + WhatIsWrong(app, error) + "; `tidegate --help` says more";
  }
  const CLI::App& command = *commands.front();
  const std::string name = "tidegate " + command.get_name();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !app.remaining().empty()) {
    return "tidegate: \"" + Shown(app.remaining().front()) +
           "\" stands before the command: write `" + name + "` first, and its options behind it";
  }
  std::string text = name + ": " + WhatIsWrong(command, error);
  text += text.ends_with('?') ? " `" : "; `";
  return text + name + " --help` says more";
}

}  // namespace tidegate::cli

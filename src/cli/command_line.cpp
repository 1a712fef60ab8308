// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/failure.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "cli/console.hpp"
#include "core/charge.hpp"

namespace tidegate::cli {

std::string UsageFormatter::make_option_usage(const CLI::Option* option) const {
  std::string name = option->get_type_name();
  if (option->get_required()) return name;
  // IDENTITY is needed too, but not always in this place, so the command checks it itself.
  if (option->get_name() == "identity") {
    const bool needed = std::ranges::all_of(
        option->get_needs(), [](const CLI::Option* rule) { return rule->get_required(); });
    const std::string ways = "IDENTITY | --key KEY | --part SOURCE=VALUE ...";
    return needed ? "(" + ways + ")" : "[" + ways + "]";
  }
  if (option->get_name() == "amount") return name;
  return "[" + name + "]";
}

namespace {

/// Returns the usage of a command on one line: `tidegate decide [OPTIONS] RULE IDENTITY`.
std::string LineOf(const CLI::App& command) {
  std::string line = "tidegate " + command.get_name() + " [OPTIONS]";
  const UsageFormatter usage;
  for (const CLI::Option* const option :
       command.get_options([](const CLI::Option* each) { return each->get_positional(); })) {
    line += " " + usage.make_option_usage(option);
  }
  for (const CLI::Option* const option : command.get_options([](const CLI::Option* each) {
         return !each->get_positional() && each->get_required();
       })) {
    line += " " + option->get_name() + " " + option->get_type_name();
  }
  return line;
}

/// Returns the first example of the command's footer; empty if there is none.
std::string ExampleOf(const CLI::App& command) {
  constexpr std::string_view kBegin = "\n  tidegate ";
  const std::string footer = command.get_footer();
  const std::size_t at = footer.find(kBegin);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kBegin.find('t');
  return footer.substr(begin, footer.find('\n', begin) - begin);
}

std::string Suggestion(const std::string& word, const std::vector<std::string>& names) {
  return DidYouMean(word, std::vector<std::string_view>(names.begin(), names.end()));
}

/// Describes only the first unexpected word, because those after it may be its values.
std::string UnexpectedWord(const CLI::App& command, const std::string& word) {
  if (!word.starts_with('-')) return "\"" + Shown(word) + "\" is one word too many";
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* const option :
       command.get_options([](const CLI::Option* each) { return each->nonpositional(); })) {
    for (const std::string& each : option->get_lnames()) names.push_back("--" + each);
  }
  return "there is no option " + Shown(name) + Suggestion(name, names);
}

std::string NoCommand(const CLI::App& app, const std::string& first) {
  constexpr const char* kHelp = "`tidegate --help` lists the commands";
  if (first.empty()) {
    return std::string("tidegate: name a command, as in `tidegate serve --demo`; ") + kHelp;
  }
  if (first.starts_with('-')) {
    const std::string wrong = UnexpectedWord(app, first);
    return "tidegate: " + wrong + (wrong.ends_with('?') ? " " : "; ") + kHelp;
  }
  std::vector<std::string> names;
  for (const CLI::App* const each : app.get_subcommands({})) names.push_back(each->get_name());
  const std::string meant = Suggestion(first, names);
  return "tidegate: \"" + Shown(first) + "\" is no command" +
         (meant.empty() ? "; name a command, as in `tidegate serve --demo`; " : meant + " ") +
         kHelp;
}

/// Returns `RULE and IDENTITY are missing`; empty if all required options are present.
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

std::string Describe(const CLI::App& command, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    if (const std::string missing = Missing(command); !missing.empty()) {
      const std::string example = ExampleOf(command);
      return missing + ": write " + LineOf(command) +
             (example.empty() ? "" : ", as in `" + example + "`");
    }
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !command.remaining().empty()) {
    return UnexpectedWord(command, command.remaining().front());
  }
  return Shown(error.what());
}

}  // namespace

std::string UsageError(const CLI::App& app, const CLI::ParseError& error,
                       const std::string& first) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) {
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return NoCommand(app, first);
    return "tidegate: " + Describe(app, error) + "; see `tidegate --help`";
  }
  const CLI::App& command = *commands.front();
  const std::string name = "tidegate " + command.get_name();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !app.remaining().empty()) {
    return "tidegate: \"" + Shown(app.remaining().front()) + "\" is before the command: write `" +
           name + "` first, and its options after it";
  }
  std::string text = name + ": " + Describe(command, error);
  text += text.ends_with('?') ? " See `" : "; see `";
  return text + name + " --help`";
}

Result<std::int64_t> ReadCount(const std::string& text) {
  if (const auto count = ParseNumber<std::int64_t>(text)) return *count;
  return Failure(ErrorCode::kBadArgument,
                 "\"" + text + "\" is not a whole number below 2^63, as 5 is");
}

Result<std::int64_t> ReadCost(const std::string& text) {
  return CountWithin(1, kMaxCost, "a cost is between 1 and 2147483647")(text);
}

Reader<std::int64_t> CountWithin(std::int64_t least, std::int64_t most, const std::string& bounds) {
  return [=](const std::string& text) -> Result<std::int64_t> {
    auto count = ReadCount(text);
    if (!count || (*count >= least && *count <= most)) return count;
    return Failure(ErrorCode::kBadArgument, text + " is out of range: " + bounds);
  };
}

Reader<Micros> DurationWithin(Micros least, Micros most, const std::string& bounds) {
  return [=](const std::string& text) -> Result<Micros> {
    auto duration = ParseDuration(text);
    // If a number is too large even for the parser, report these bounds instead of the parser's.
    const std::size_t unit = text.find_first_not_of("0123456789");
    const bool too_large = !duration && unit != 0 && unit != std::string::npos &&
                           ParseDuration("1" + text.substr(unit));
    if (!duration && !too_large) return duration;
    if (!too_large && *duration >= least && *duration <= most) return duration;
    return Failure(ErrorCode::kBadArgument, text + " is out of range: " + bounds);
  };
}

Result<std::string> ReadNotEmpty(const std::string& text) {
  if (!text.empty()) return text;
  return Failure(ErrorCode::kBadConfig,
                 "the value is empty: give one, or omit the option for its default");
}

}  // namespace tidegate::cli

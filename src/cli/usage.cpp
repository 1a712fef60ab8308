// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.hpp"

#include <algorithm>
#include <string_view>

namespace tidegate::cli {

std::string Usage::LineOf(const CLI::App& command) {
  std::string line = "tidegate " + command.get_name() + " [OPTIONS]";
  const Usage usage;
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

std::string Usage::ExampleOf(const CLI::App& command) {
  constexpr std::string_view kBegin = "\n  tidegate ";
  const std::string footer = command.get_footer();
  const std::size_t at = footer.find(kBegin);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kBegin.find('t');
  return footer.substr(begin, footer.find('\n', begin) - begin);
}

std::string Usage::make_option_usage(const CLI::Option* option) const {
  std::string name = option->get_type_name();
  if (option->get_required()) return name;
  // Needed too, but not always in this place, so the parser leaves them to the command.
  if (option->get_name() == "identity") {
    const bool needed = std::ranges::all_of(
        option->get_needs(), [](const CLI::Option* rule) { return rule->get_required(); });
    const std::string ways = "IDENTITY | --key KEY | --part SOURCE=VALUE ...";
    return needed ? "(" + ways + ")" : "[" + ways + "]";
  }
  if (option->get_name() == "amount") return name;
  return "[" + name + "]";
}

}  // namespace tidegate::cli

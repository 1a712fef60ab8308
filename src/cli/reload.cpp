// SPDX-License-Identifier: Apache-2.0
#include "cli/reload.hpp"

#include <ostream>

#include "cli/exit.hpp"
#include "cli/human.hpp"
#include "cli/shown_text.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;

/// One line each: `12:5: error: rules[2].limit: ...`, after the name of an included file.
void PrintProblems(const Members& answer, std::ostream& to, Colours colours) {
  for (const auto& entry : answer.Array("problems")) {
    const Members problem(entry);
    const std::string severity = Shown(problem.Text("severity"));
    if (const std::string file = Shown(problem.Text("file")); !file.empty()) {
      to << file << (problem.Whole("line") > 0 ? ":" : ": ");
    }
    // Line 0: the file as a whole.
    if (problem.Whole("line") > 0) {
      to << problem.Whole("line") << ':' << problem.Whole("column") << ": ";
    }
    to << Inked(severity, severity == "error" ? Ink::kBad : Ink::kWarning, colours) << ": ";
    if (const std::string in = Shown(problem.Text("in")); !in.empty()) to << in << ": ";
    to << Shown(problem.Text("message")) << '\n';
  }
  if (const auto more = answer.Whole("left_out"); more > 0)
    to << "and " << Count(more) << " more\n";
}

void PrintReload(const Members& answer, const Console& console) {
  PrintProblems(answer, console.out, console.colours);
  console.out << Inked("reloaded", Ink::kGood, console.colours) << ": "
              << Plural(answer.Whole("rules"), "rule") << " in force\n";
  for (const auto& part : answer.Array("needs_restart")) {
    console.out << Inked("needs a restart", Ink::kWarning, console.colours) << ": "
                << Shown(TextOf(part)) << '\n';
  }
  WarnIfNotRecorded(answer, console);
}

}  // namespace

int Reload(const AskOptions& options, const Console& console) {
  const auto client = AdminClient::Make(options);
  if (!client) return Tell("reload", client.error(), options.json, console);
  Warn("reload", *client, console);
  const auto answer = client->Ask({"/v1/reload", json::object{}, true});
  if (!answer) {
    boost::system::error_code error;
    const json::value problem = json::parse(answer.error().text, error);
    if (!error && !options.json) PrintProblems(Members(problem), console.err, Colours::kOff);
    return Tell("reload", answer.error(), options.json, console);
  }
  return PrintAnswer(*answer, options, console,
                     [&](const Members& members) { PrintReload(members, console); });
}

}  // namespace tidegate::cli

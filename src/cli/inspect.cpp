// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect.hpp"

#include <cstdint>

#include "cli/exit.hpp"
#include "cli/human.hpp"
#include "cli/override_text.hpp"
#include "cli/quota_text.hpp"
#include "cli/shown_text.hpp"
#include "cli/table.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// What is stored does not decide alone: an operator's word comes before it.
enum class Standing : std::uint8_t { kAllowed, kDenied, kBanned, kUncounted };

Standing StandingOf(const Members& key) {
  const std::string kind = key.Of("override").Text("kind");
  if (kind == "ban") return Standing::kBanned;
  if (kind == "allow") return Standing::kUncounted;
  return key.Yes("allowed") ? Standing::kAllowed : Standing::kDenied;
}

std::string NowText(const Members& key) {
  constexpr const char* kWords[] = {"allowed", "denied", "banned", "allowed without being counted"};
  std::string text = kWords[static_cast<std::size_t>(StandingOf(key))];
  // What is asked with may be more than is left, though there is some.
  if (key.Has("cost") && key.Whole("cost") != 1) text += " at cost " + Count(key.Whole("cost"));
  text += ", " + Count(key.Whole("remaining")) + " of " + Count(key.Whole("capacity")) + " left";
  if (key.Whole("retry_after_ms") > 0) {
    text += ", try again in " + FormatDuration(key.Ms("retry_after_ms"));
  }
  if (key.Whole("reset_after_ms") > 0) {
    text += ", all of it in " + FormatDuration(key.Ms("reset_after_ms"));
  }
  return text;
}

void PrintKey(const Members& key, const Console& console) {
  Table facts({{""}, {""}});
  facts.Add({"rule", key.Text("rule")});
  facts.Add({"key", key.Text("key")});
  if (key.Has("stored_as")) facts.Add({"stored as", key.Text("stored_as")});
  facts.Add({"quota", QuotaOf(key) + " (" + key.Text("algorithm") + ")"});
  const Standing standing = StandingOf(key);
  const bool passes = standing == Standing::kAllowed || standing == Standing::kUncounted;
  facts.Add({"now", Cell(NowText(key), passes ? Ink::kGood : Ink::kBad)});
  if (!key.Yes("tracked")) facts.Add({"tracked", "no: nothing is stored, so all of it is there"});
  bool first = true;
  for (const auto& entry : key.Array("state")) {
    const Members state(entry);
    facts.Add({first ? "state" : "", state.Text("name") + " " + state.Text("value")});
    first = false;
  }
  const Members given = key.Of("override");
  facts.Add({"override", given.empty() ? Cell("none")
                                       : Cell(OverrideText(given),
                                              given.Has("from") ? Ink::kPlain : Ink::kWarning)});
  facts.Print(console);
}

}  // namespace

int Inspect(const InspectOptions& options, const Console& console) {
  auto question = options.whom.Question();
  if (!question) return Tell("inspect", {kUsage, Shown(question.error().message)}, false, console);
  return AskAndPrint(
      "inspect", options.ask,
      {.target = "/v1/inspect", .body = std::move(*question), .hints = options.whom.Hints()},
      console, [&](const Members& key) { PrintKey(key, console); });
}

}  // namespace tidegate::cli

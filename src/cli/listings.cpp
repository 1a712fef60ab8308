// SPDX-License-Identifier: Apache-2.0
#include "cli/listings.hpp"

#include <ostream>

#include "cli/exit.hpp"
#include "cli/freshness.hpp"
#include "cli/human.hpp"
#include "cli/match_text.hpp"
#include "cli/override_text.hpp"
#include "cli/quota_text.hpp"
#include "cli/shown_text.hpp"
#include "cli/table.hpp"

namespace tidegate::cli {
namespace {

/// `1`, or `1 + 2 configured`: those that operators gave, and those of the configuration.
std::string OverrideCounts(const Members& rule) {
  std::string text = Count(rule.Whole("overrides"));
  const std::int64_t configured = rule.Whole("configured_overrides");
  return configured == 0 ? text : text + " + " + Count(configured) + " configured";
}

void PrintRules(const Members& answer, const Console& console) {
  Table table({{"RULE"},
               {"QUOTA"},
               {"ALGORITHM"},
               {"MODE"},
               {"ALLOWED", Align::kRight},
               {"DENIED", Align::kRight},
               {"OVERRIDES", Align::kRight},
               {"PER"},
               {"MATCH"}});
  for (const auto& entry : answer.Array("rules")) {
    const Members rule(entry);
    const Members decisions = rule.Of("decisions");
    const std::int64_t denied = decisions.Whole("denied") + decisions.Whole("banned");
    const bool shadow = rule.Text("mode") == "shadow";
    table.Add({Cell(rule.Text("rule"), Ink::kStrong), QuotaOf(rule), rule.Text("algorithm"),
               Cell(rule.Text("mode"), shadow ? Ink::kWarning : Ink::kPlain),
               Count(decisions.Whole("allowed") + decisions.Whole("shadow_allowed") +
                     decisions.Whole("exempted")),
               Cell(Count(denied + decisions.Whole("shadow_denied")),
                    denied > 0 ? Ink::kBad : Ink::kPlain),
               OverrideCounts(rule), rule.Text("per"), MatchText(rule.Of("match"))});
  }
  if (table.empty()) {
    console.out << "no rules\n";
  } else {
    table.Print(console);
  }
}

void PrintOverrides(const Members& answer, const Console& console) {
  Table table(
      {{"RULE"}, {"KEY"}, {"KIND"}, {"SINCE"}, {"LEFT", Align::kRight}, {"BY"}, {"REASON"}});
  for (const auto& entry : answer.Array("overrides")) {
    const Members given(entry);
    const bool in_force = !given.Has("in_force") || given.Yes("in_force");
    const std::string reason = in_force ? given.Text("reason")
                                        : "not in force: " + given.Text("why") +
                                              (given.Text("reason").empty() ? "" : "; ") +
                                              given.Text("reason");
    table.Add({Cell(given.Text("rule"), Ink::kStrong), given.Text("key"),
               Cell(OverrideKind(given), given.Text("kind") == "ban" ? Ink::kBad : Ink::kPlain),
               TimeStamp(given.Whole("since_ms")),
               given.Has("left_ms") ? Span(given.Ms("left_ms")) : "-", given.Text("by"),
               Cell(reason, in_force ? Ink::kPlain : Ink::kWarning)});
  }
  const Freshness freshness = Freshness::Of(answer);
  if (!table.empty()) {
    table.Print(console);
  } else if (freshness.known) {
    console.out << "no operator has banned, allowed or given a quota to anybody\n";
  }
  if (!freshness.good()) {
    console.out << Inked(freshness.Text(), Ink::kWarning, console.colours) << '\n';
  }
}

void PrintHot(const Members& answer, const std::string& by, const Console& console) {
  const Members list = answer.Of(by);
  console.out << "by " << by << " in the last " << Span(answer.Ms("window_ms")) << ", of "
              << Count(list.Whole("total")) << " in all\n";
  Table table({{"COUNT", Align::kRight},
               {"AT LEAST", Align::kRight},
               {"SHARE", Align::kRight},
               {"RULE"},
               {"KEY"}});
  for (const auto& entry : list.Array("keys")) {
    const Members key(entry);
    const std::int64_t count = key.Whole("count");
    table.Add({Count(count), Count(count - key.Whole("error")),
               Share(static_cast<double>(count), list.Number("total")),
               Cell(key.Text("rule"), Ink::kStrong), key.Text("key")});
  }
  if (table.empty()) {
    console.out << "no keys\n";
  } else {
    table.Print(console);
  }
}

/// `3 changes and 1 failed authentication`.
std::string MissingText(const Members& history) {
  return Plural(history.Whole("missing_changes"), "change") + " and " +
         Plural(history.Whole("missing_failures"), "failed authentication");
}

/// Says which records the list lacks: one that looks complete and is not would mislead.
void PrintHistory(const Members& history, bool cut, const Console& console) {
  const std::string since = TimeStamp(history.Whole("since_ms"));
  std::string text;
  Ink ink = Ink::kWarning;
  if (history.Has("lost_ms")) {
    text = "records are missing: Redis lost some (noticed at " +
           TimeStamp(history.Whole("lost_ms")) + "); " + MissingText(history) +
           " cannot be listed. The logs of the nodes have the changes";
  } else if (!history.Yes("complete")) {
    text = "older records are missing: only the latest are kept; " + MissingText(history) +
           " cannot be listed. The logs of the nodes have the changes";
  } else if (history.Text("kept_in") == "memory") {
    text = "kept in memory since the server started at " + since +
           "; earlier records are lost. The log of the server has the changes";
  } else {
    text = "complete since " + since;
    ink = Ink::kQuiet;
  }
  if (cut) text += "; --limit lists more";
  console.out << Inked(text, ink, console.colours) << '\n';
}

void PrintAudit(const Members& answer, std::int64_t limit, const Console& console) {
  Table table({{"TIME"}, {"BY"}, {"FROM"}, {"ACTION"}, {"RULE"}, {"KEY"}, {"DETAIL"}, {"NODE"}});
  for (const auto& entry : answer.Array("entries")) {
    const Members change(entry);
    // A failed authentication is not a change, so there was never anything to do.
    const bool applied =
        !change.Has("applied") || change.Yes("applied") || change.Text("action") == "auth_failed";
    table.Add({TimeStamp(change.Whole("time_ms")), change.Text("by"), change.Text("from"),
               Cell(change.Text("action") + (applied ? "" : " (nothing to do)"),
                    applied ? Ink::kStrong : Ink::kQuiet),
               change.Text("rule"), change.Text("key"), change.Text("detail"),
               change.Text("node")});
  }
  const Members history = answer.Of("history");
  if (!table.empty()) {
    table.Print(console);
  } else if (history.empty() || history.Yes("complete")) {
    console.out << "nothing was changed, and no authentication failed\n";
  } else {
    console.out << "no records\n";
  }
  // An older server does not report the history.
  if (!history.empty()) {
    PrintHistory(history, std::ssize(answer.Array("entries")) >= limit, console);
  }
}

}  // namespace

int ListRules(const AskOptions& options, const Console& console) {
  return AskAndPrint("rules", options, {"/v1/rules"}, console,
                     [&](const Members& answer) { PrintRules(answer, console); });
}

int ListOverrides(const AskOptions& options, const Console& console) {
  return AskAndPrint("overrides", options, {"/v1/overrides"}, console,
                     [&](const Members& answer) { PrintOverrides(answer, console); });
}

int ListHot(const HotOptions& options, const Console& console) {
  return AskAndPrint("hot", options.ask, {"/v1/hot?limit=" + std::to_string(options.limit)},
                     console,
                     [&](const Members& answer) { PrintHot(answer, options.by, console); });
}

int ListAudit(const AuditOptions& options, const Console& console) {
  return AskAndPrint("audit", options.ask, {"/v1/audit?limit=" + std::to_string(options.limit)},
                     console,
                     [&](const Members& answer) { PrintAudit(answer, options.limit, console); });
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
// The listing commands, `status` and `reload`.
#include <ostream>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/response.hpp"

namespace tidegate::cli {
namespace {

void PrintOr(const Table& table, std::string_view if_empty, const Console& console) {
  if (table.empty()) {
    console.out << if_empty << '\n';
  } else {
    table.Print(console);
  }
}

/// Returns the numbers of operators' and of configured overrides: `1`, or `1 + 2 configured`.
std::string OverrideCounts(const JsonView& rule) {
  std::string text = Count(rule.Int("overrides"));
  const std::int64_t configured = rule.Int("configured_overrides");
  return configured == 0 ? text : text + " + " + Count(configured) + " configured";
}

void PrintRules(const JsonView& answer, const Console& console) {
  Table table("RULE|QUOTA|ALGORITHM|MODE|>ALLOWED|>DENIED|>OVERRIDES|PER|MATCH");
  for (const JsonView& rule : answer.Objects("rules")) {
    const JsonView decisions = rule.Object("decisions");
    const std::int64_t denied = decisions.Int("denied") + decisions.Int("banned");
    const bool shadow = rule.Text("mode") == "shadow";
    table.Add({Cell(rule.Text("rule"), Style::kStrong), QuotaOf(rule), rule.Text("algorithm"),
               Cell(rule.Text("mode"), shadow ? Style::kWarning : Style::kPlain),
               Count(decisions.Int("allowed") + decisions.Int("shadow_allowed") +
                     decisions.Int("exempted")),
               Cell(Count(denied + decisions.Int("shadow_denied")),
                    denied > 0 ? Style::kBad : Style::kPlain),
               OverrideCounts(rule), rule.Text("per"), MatchText(rule.Object("match"))});
  }
  PrintOr(table, "no rules", console);
}

void PrintOverrides(const JsonView& answer, const Console& console) {
  Table table("RULE|KEY|KIND|SINCE|>LEFT|BY|REASON");
  for (const JsonView& given : answer.Objects("overrides")) {
    const bool in_force = !given.Has("in_force") || given.Bool("in_force");
    const std::string reason = in_force ? given.Text("reason")
                                        : "not in force: " + given.Text("why") +
                                              (given.Text("reason").empty() ? "" : "; ") +
                                              given.Text("reason");
    table.Add({Cell(given.Text("rule"), Style::kStrong), given.Text("key"),
               Cell(OverrideKind(given), given.Text("kind") == "ban" ? Style::kBad : Style::kPlain),
               TimeStamp(given.Int("since_ms")),
               given.Has("left_ms") ? Span(given.Ms("left_ms")) : "-", given.Text("by"),
               Cell(reason, in_force ? Style::kPlain : Style::kWarning)});
  }
  const Freshness freshness = Freshness::Of(answer);
  if (!table.empty()) {
    table.Print(console);
  } else if (freshness.known) {
    console.out << "no operator has banned or allowed a key or changed its quota\n";
  }
  if (!freshness.good()) {
    console.out << console.Paint(freshness.Text(), Style::kWarning) << '\n';
  }
}

void PrintHot(const JsonView& answer, const std::string& by, const Console& console) {
  const JsonView list = answer.Object(by);
  console.out << "by " << by << " in the last " << Span(answer.Ms("window_ms")) << ", of "
              << Count(list.Int("total")) << " in all\n";
  Table table(">COUNT|>AT LEAST|>SHARE|RULE|KEY");
  for (const JsonView& key : list.Objects("keys")) {
    const std::int64_t count = key.Int("count");
    table.Add({Count(count), Count(count - key.Int("error")),
               Share(static_cast<double>(count), list.Number("total")),
               Cell(key.Text("rule"), Style::kStrong), key.Text("key")});
  }
  PrintOr(table, "no keys", console);
}

/// Prints which records are missing, because an incomplete list that looks complete would mislead.
void PrintHistory(const JsonView& history, bool cut, const Console& console) {
  const std::string since = TimeStamp(history.Int("since_ms"));
  std::string text;
  Style style = Style::kWarning;
  const bool lost = history.Has("lost_ms");
  if (lost || !history.Bool("complete")) {
    text = (lost ? "records are missing: Redis lost some (noticed at " +
                       TimeStamp(history.Int("lost_ms")) + "); "
                 : "older records are missing: only the latest are kept; ") +
           Plural(history.Int("missing_changes"), "change") + " and " +
           Plural(history.Int("missing_failures"), "failed authentication") +
           " cannot be listed. The logs of the nodes have the changes";
  } else if (history.Text("kept_in") == "memory") {
    text = "kept in memory since the server started at " + since +
           "; earlier records are lost. The log of the server has the changes";
  } else {
    text = "complete since " + since;
    style = Style::kQuiet;
  }
  if (cut) text += "; --limit lists more";
  console.out << console.Paint(text, style) << '\n';
}

void PrintAudit(const JsonView& answer, std::int64_t limit, const Console& console) {
  Table table("TIME|BY|FROM|ACTION|RULE|KEY|DETAIL|NODE");
  for (const JsonView& change : answer.Objects("entries")) {
    // A failed authentication is not a change, so there was never anything to do.
    const bool applied =
        !change.Has("applied") || change.Bool("applied") || change.Text("action") == "auth_failed";
    table.Add({TimeStamp(change.Int("time_ms")), change.Text("by"), change.Text("from"),
               Cell(change.Text("action") + (applied ? "" : " (nothing to do)"),
                    applied ? Style::kStrong : Style::kQuiet),
               change.Text("rule"), change.Text("key"), change.Text("detail"),
               change.Text("node")});
  }
  const JsonView history = answer.Object("history");
  const bool complete = history.empty() || history.Bool("complete");
  PrintOr(table, complete ? "nothing was changed, and no authentication failed" : "no records",
          console);
  // An older server does not report the history.
  if (!history.empty()) {
    PrintHistory(history, std::ssize(answer.Array("entries")) >= limit, console);
  }
}

/// Returns the counts that are not 0: `store 1,000, cache 20`.
std::string CountsText(const JsonView& counts) {
  std::string text;
  for (const auto& count : counts) {
    if (AsInt(count.value()) == 0) continue;
    text.append(text.empty() ? "" : ", ").append(count.key()).append(" ");
    text += Count(AsInt(count.value()));
  }
  return text.empty() ? "none" : text;
}

/// Returns the quantiles of `latency`. `calls` is the number of all calls; only a part is timed.
std::string LatencyText(const JsonView& latency, std::int64_t calls) {
  const LatencyBuckets buckets = LatencyBuckets::Of(latency);
  const auto p50 = buckets.Quantile(0.5);
  if (!p50) return calls > 0 ? "too few samples yet" : "no answers yet";
  return "p50 " + p50->Text() + ", p99 " + buckets.Quantile(0.99)->Text() + " of " +
         Count(buckets.count());
}

void AddStore(const JsonView& status, Table& facts) {
  const JsonView store = status.Object("store");
  const bool healthy = StoreIsHealthy(store);
  std::string text = store.Text("kind");
  if (store.Has("mode")) text += " " + store.Text("mode");
  if (store.Has("url")) text += " " + store.Text("url");
  facts.Add({"store", Cell(text, healthy ? Style::kPlain : Style::kBad)});
  if (!store.Has("breaker")) return;
  facts.Add({"", Cell("connected " + store.Text("connected") + " of " + store.Text("nodes") +
                          ", breaker " + store.Text("breaker") + ", waiting " +
                          Count(store.Int("waiting")),
                      healthy ? Style::kGood : Style::kBad)});
  if (const JsonView error = store.Object("last_error"); !error.empty()) {
    facts.Add({"", Cell(LastErrorText(error), healthy ? Style::kPlain : Style::kBad)});
  }
  facts.Add({"", LatencyText(store.Object("latency"), store.Int("calls"))});
  facts.Add({"", Count(store.Int("batches")) + " batches, " + Count(store.Int("calls")) +
                     " calls, " + Count(store.Int("entries")) + " entries, " +
                     Count(store.Int("cache_hits")) + " denials from the cache"});
}

void AddOverrides(const JsonView& status, Table& facts) {
  const JsonView overrides = status.Object("overrides");
  if (overrides.empty()) return;
  const Freshness freshness = Freshness::Of(overrides);
  std::string text = freshness.Text();
  if (freshness.known) {
    text = Count(overrides.Int("count")) + (text.empty() ? "" : ", ") + text;
  }
  facts.Add({"overrides", Cell(text, freshness.good() ? Style::kPlain : Style::kWarning)});
}

void AddConfig(const JsonView& status, Table& facts) {
  const JsonView config = status.Object("config");
  if (config.empty()) return;
  const std::int64_t refused = config.Int("refused");
  facts.Add({"config", Cell(Plural(config.Int("rules"), "rule") + " since " +
                                TimeStamp(config.Int("applied_ms")) + ", " +
                                Plural(config.Int("reloads"), "reload") +
                                (refused == 0 ? "" : ", " + Count(refused) + " refused"),
                            refused == 0 ? Style::kPlain : Style::kWarning)});
}

void PrintStatus(const JsonView& status, const Console& console) {
  Table facts("|");
  facts.Add({"server", Cell("tidegate " + status.Text("version") + ", node " + status.Text("node") +
                                ", up " + Span(status.Ms("uptime_ms")) + ", " +
                                Plural(status.Int("threads"), "thread") +
                                (status.Bool("draining") ? ", draining" : ""),
                            status.Bool("draining") ? Style::kWarning : Style::kStrong)});
  AddStore(status, facts);
  const JsonView memory = status.Object("memory");
  if (!memory.empty()) {
    facts.Add({"memory", Plural(memory.Int("tracked"), "key") + " tracked, " +
                             Count(memory.Int("overflowed")) + " overflowed, " +
                             Bytes(memory.Int("list_bytes")) + " of lists"});
  }
  const JsonView fleet = status.Object("fleet");
  if (!fleet.empty()) {
    const std::int64_t mismatches = fleet.Int("key_mismatches");
    facts.Add({"fleet", Cell(Plural(fleet.Int("nodes"), "node") + ", " + Count(mismatches) +
                                 " with another HMAC key",
                             mismatches == 0 ? Style::kPlain : Style::kBad)});
  }
  AddConfig(status, facts);
  AddOverrides(status, facts);
  const JsonView decisions = status.Object("decisions");
  if (status.Has("requests")) facts.Add({"requests", CountsText(status.Object("requests"))});
  facts.Add({"decisions", CountsText(decisions)});
  facts.Add({"decided by", CountsText(status.Object("decided_by"))});
  const std::string failures = CountsText(status.Object("failures"));
  facts.Add({"failures", Cell(failures, failures == "none" ? Style::kPlain : Style::kBad)});
  std::int64_t decided = 0;
  for (const auto& outcome : decisions) decided += AsInt(outcome.value());
  facts.Add({"latency", LatencyText(status.Object("latency"), decided)});
  facts.Print(console);
  Table listeners("LISTENER|>CONNECTIONS|>ACCEPTED|>REQUESTS|>REFUSED|>SHED");
  for (const JsonView& one : status.Objects("listeners")) {
    listeners.Add({one.Text("listener"), Count(one.Int("connections")), Count(one.Int("accepted")),
                   Count(one.Int("requests")), Count(one.Int("refused")), Count(one.Int("shed"))});
  }
  if (!listeners.empty()) {
    console.out << '\n';
    listeners.Print(console);
  }
}

/// Prints one line per problem: `12:5: error: ...`, after the file name if the file is included.
void PrintProblems(const JsonView& answer, std::ostream& to, Colours colours) {
  for (const JsonView& problem : answer.Objects("problems")) {
    const std::string severity = Shown(problem.Text("severity"));
    if (const std::string file = Shown(problem.Text("file")); !file.empty()) {
      to << file << (problem.Int("line") > 0 ? ":" : ": ");
    }
    // Line 0 means that the problem concerns the whole file.
    if (problem.Int("line") > 0) {
      to << problem.Int("line") << ':' << problem.Int("column") << ": ";
    }
    to << Styled(severity, severity == "error" ? Style::kBad : Style::kWarning, colours) << ": ";
    if (const std::string in = Shown(problem.Text("in")); !in.empty()) to << in << ": ";
    to << Shown(problem.Text("message")) << '\n';
  }
  if (const auto more = answer.Int("left_out"); more > 0) to << "and " << Count(more) << " more\n";
}

void PrintReload(const JsonView& answer, const Console& console) {
  PrintProblems(answer, console.out, console.colours);
  console.out << console.Paint("reloaded", Style::kGood) << ": "
              << Plural(answer.Int("rules"), "rule") << " in force\n";
  for (const auto& part : answer.Array("needs_restart")) {
    console.out << console.Paint("needs a restart", Style::kWarning) << ": " << Shown(AsText(part))
                << '\n';
  }
  WarnIfNotRecorded(answer, console);
}

}  // namespace

int ListRules(const ClientOptions& options, const Console& console) {
  return RequestAndPrint("rules", options, AdminRequest{"/v1/rules"}, console, PrintRules);
}

int ListOverrides(const ClientOptions& options, const Console& console) {
  return RequestAndPrint("overrides", options, AdminRequest{"/v1/overrides"}, console,
                         PrintOverrides);
}

int ListHot(const HotOptions& options, const Console& console) {
  return RequestAndPrint(
      "hot", options.client, AdminRequest{"/v1/hot?limit=" + std::to_string(options.limit)},
      console,
      [&](const JsonView& answer, const Console& to) { PrintHot(answer, options.by, to); });
}

int ListAudit(const AuditOptions& options, const Console& console) {
  return RequestAndPrint(
      "audit", options.client, AdminRequest{"/v1/audit?limit=" + std::to_string(options.limit)},
      console,
      [&](const JsonView& answer, const Console& to) { PrintAudit(answer, options.limit, to); });
}

int Status(const ClientOptions& options, const Console& console) {
  return RequestAndPrint("status", options, AdminRequest{"/v1/status"}, console, PrintStatus);
}

int Reload(const ClientOptions& options, const Console& console) {
  return RequestAndPrint(
      "reload", options,
      AdminRequest{.target = "/v1/reload", .body = boost::json::object{}, .changes = true}, console,
      PrintReload, [](const JsonView& problem, const Console& to) {
        PrintProblems(problem, to.err, Colours::kOff);
      });
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.hpp"

#include <algorithm>
#include <ostream>

#include "cli/exit.hpp"
#include "cli/human.hpp"
#include "cli/match_text.hpp"
#include "cli/override_text.hpp"
#include "cli/quota_text.hpp"
#include "cli/rule_verdict.hpp"
#include "cli/shown_text.hpp"
#include "cli/table.hpp"
#include "core/refuse.hpp"
#include "rules/foreign_path.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

/// `name: value`, as curl's -H has it. A name that comes again makes a list.
Result<json::object> HeadersOf(const std::vector<std::string>& lines) {
  json::object headers;
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string::npos) {
      return Refuse(ErrorCode::kBadCharge,
                    "--header is 'name: value', as in --header 'x-api-key: abc'");
    }
    std::string name = line.substr(0, colon);
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    const std::size_t begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    json::value& value = headers[name];
    if (value.is_null()) {
      value = line.substr(begin);
    } else {
      if (!value.is_array()) value = json::array{value};
      value.get_array().emplace_back(line.substr(begin));
    }
  }
  return headers;
}

Result<json::object> RequestOf(const ExplainOptions& options) {
  json::object request;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) request[name] = value;
  };
  const std::size_t question_mark = options.path.find('?');
  add("method", options.method);
  add("host", options.host);
  add("path", options.path.substr(0, question_mark));
  if (question_mark != std::string::npos) add("query", options.path.substr(question_mark + 1));
  add("client_ip", options.client_ip);
  add("peer", options.peer);
  auto headers = HeadersOf(options.headers);
  if (!headers) return std::unexpected(headers.error());
  if (!headers->empty()) request["headers"] = std::move(*headers);
  return request;
}

/// Whether the path is that of a rule rather than of a request: `/users/:id`, `/v1/**`,
/// `/users/{id}`.
bool IsPattern(std::string_view path) {
  path = path.substr(0, path.find('?'));
  return path.ends_with("/**") || path.find("/:") != std::string_view::npos ||
         ReadForeignPath(path).has_value();
}

bool AnyRule(const Members& answer, bool (*fits)(const Members& rule)) {
  return std::ranges::any_of(answer.Array("rules"),
                             [&](const json::value& rule) { return fits(Members(rule)); });
}

/// Who decides.
std::string Decider(const Members& answer) {
  std::string outcome = answer.Text("outcome");
  // As the messages of the configuration name it.
  std::string entry = answer.Has("entry") ? "[" + answer.Text("entry") + "]" : "";
  if (answer.Has("entry_match")) entry += " (" + MatchText(answer.Of("entry_match")) + ")";
  if (answer.Yes("preflight")) return "exempt_preflights lets it pass uncounted";
  if (outcome == "exempt") return "exempt" + entry + " lets it pass uncounted";
  if (outcome == "deny") return "deny" + entry + " refuses it";
  if (outcome == "banned") return "an operator banned it";
  if (outcome == "uncounted") {
    const auto by_operator = [](const Members& rule) {
      return rule.Of("override").Text("kind") == "allow";
    };
    return AnyRule(answer, by_operator) ? "an operator lets it pass" : "no rule counts it";
  }
  if (answer.Has("rule")) return "rule " + answer.Text("rule") + " governs";
  return outcome;
}

void PrintVerdict(const Members& answer, const Console& console) {
  const bool allowed = answer.Yes("allowed");
  const bool lost = allowed && answer.Whole("status") == 404;
  const char* const words = lost      ? "would pass the rules, but no route leads from there"
                            : allowed ? "would be allowed"
                                      : "would be denied";
  console.out << Inked(words,
                       lost      ? Ink::kWarning
                       : allowed ? Ink::kGood
                                 : Ink::kBad,
                       console.colours);
  if (answer.Has("status")) console.out << " (" << answer.Whole("status") << ")";
  console.out << ": " << Shown(Decider(answer));
  if (AnyRule(answer, WithoutStore)) console.out << " (the store does not answer)";
  console.out << '\n';
}

std::string RequestLine(const Members& request) {
  std::string text = request.Text("method");
  text += (text.empty() ? "" : " ") + request.Text("host") + request.Text("path");
  if (request.Has("query")) text += "?" + request.Text("query");
  if (request.Has("client_ip")) text += " from " + request.Text("client_ip");
  return text;
}

void PrintRule(const Members& rule, const Console& console) {
  const std::string name = Inked(Shown(rule.Text("rule")), Ink::kStrong, console.colours);
  if (!rule.Yes("matched")) {
    console.out << '\n' << name << "  does not match: " << Shown(rule.Text("why")) << '\n';
    return;
  }
  const RuleVerdict verdict = RuleVerdict::Of(rule);
  console.out << '\n'
              << name << "  " << Inked(Shown(verdict.text), verdict.ink, console.colours) << '\n';
  Table facts({{""}, {""}});
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) facts.Add({label, text});
  };
  if (rule.Has("limit")) {
    add("quota",
        QuotaOf(rule) + " (" + rule.Text("algorithm") + "), cost " + Count(rule.Whole("cost")));
  }
  add("mode", rule.Text("mode") +
                  (rule.Has("on_failure") ? ", on failure " + rule.Text("on_failure") : ""));
  if (rule.Has("match")) add("match", MatchText(rule.Of("match")));
  add("per", rule.Text("per"));
  add("counted by", rule.Text("counted_by"));
  add("key", rule.Text("key"));
  add("stored as", rule.Text("stored_as"));
  const Members given = rule.Of("override");
  if (!given.empty()) add("override", OverrideText(given));
  add("why", rule.Text("why"));
  facts.Print(console, "  ");
}

void PrintExplanation(const Members& answer, const Console& console) {
  PrintVerdict(answer, console);
  const Members request = answer.Of("request");
  if (!request.empty()) console.out << "request: " << Shown(RequestLine(request)) << '\n';
  if (answer.Has("route")) console.out << "route: " << Shown(answer.Text("route")) << '\n';
  for (const auto& rule : answer.Array("rules")) PrintRule(Members(rule), console);
  if (answer.Whole("left_out") > 0) {
    console.out << '\n' << Plural(answer.Whole("left_out"), "more rule") << " not shown\n";
  }
}

}  // namespace

Result<AdminQuestion> QuestionOf(const ExplainOptions& options) {
  json::object body;
  if (!options.whom.rule.empty()) {
    auto whom = options.whom.Question();
    if (!whom) return std::unexpected(whom.error());
    body = std::move(*whom);
  }
  auto request = RequestOf(options);
  if (!request) return std::unexpected(request.error());
  if (request->empty() == options.whom.rule.empty()) {
    return Refuse(ErrorCode::kBadCharge,
                  request->empty()
                      ? "describe a request (--path /v1/x --client-ip A ...), or name RULE IDENTITY"
                      : "describe a request or name RULE IDENTITY, not both");
  }
  if (!request->empty()) {
    if (!request->contains("path"))
      return Refuse(ErrorCode::kBadCharge, "--path is needed, as in --path /v1/login");
    body["request"] = std::move(*request);
    if (options.gateway) body["door"] = "gateway";
  }
  if (options.gateway && !body.contains("request")) {
    return Refuse(ErrorCode::kBadCharge,
                  "--gateway goes with a request: --path /v1/x --client-ip A ...");
  }
  if (options.cost != 0) body["cost"] = options.cost;
  if (!options.lease.empty()) body["lease"] = options.lease;
  AdminQuestion question{.target = "/v1/explain", .body = std::move(body)};
  if (!options.whom.rule.empty()) question.hints = options.whom.Hints();
  return question;
}

int Explain(const ExplainOptions& options, const Console& console) {
  const auto question = QuestionOf(options);
  if (!question) return Tell("explain", {kUsage, Shown(question.error().message)}, false, console);
  if (IsPattern(options.path)) {
    console.err << "tidegate explain: `" << Shown(options.path)
                << "` looks like a pattern; --path is the path of a request, as in /users/42\n";
  }
  return AskAndPrint("explain", options.ask, *question, console,
                     [&](const Members& answer) { PrintExplanation(answer, console); });
}

}  // namespace tidegate::cli

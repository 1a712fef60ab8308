// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <expected>
#include <ostream>

#include "base/ascii.hpp"
#include "base/failure.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/response.hpp"
#include "rules/foreign_path.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

/// Parses `name: value`, as curl's -H does. A repeated name becomes a list.
Result<json::object> HeadersOf(const std::vector<std::string>& lines) {
  json::object headers;
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string::npos) {
      return Failure(ErrorCode::kBadCharge,
                     "--header is 'name: value', as in --header 'x-api-key: abc'");
    }
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), Lower);
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

/// Returns true if the path is the pattern of a rule rather than the path of a request:
/// `/users/:id`, `/v1/**`, `/users/{id}`.
bool IsPattern(std::string_view path) {
  path = path.substr(0, path.find('?'));
  return path.ends_with("/**") || path.find("/:") != std::string_view::npos ||
         ReadForeignPath(path).has_value();
}

bool AnyRule(const JsonView& answer, bool (*matches)(const JsonView& rule)) {
  return std::ranges::any_of(answer.Objects("rules"), matches);
}

/// Returns text that names the entry, rule or operator that decides.
std::string Decider(const JsonView& answer) {
  std::string outcome = answer.Text("outcome");
  // Entries are named as in the messages of the configuration.
  std::string entry = answer.Has("entry") ? "[" + answer.Text("entry") + "]" : "";
  if (answer.Has("entry_match")) entry += " (" + MatchText(answer.Object("entry_match")) + ")";
  if (answer.Bool("preflight")) return "exempt_preflights lets the request pass uncounted";
  if (outcome == "exempt") return "exempt" + entry + " lets the request pass uncounted";
  if (outcome == "deny") return "deny" + entry + " rejects the request";
  if (outcome == "banned") return "an operator banned the key";
  if (outcome == "uncounted") {
    const auto by_operator = [](const JsonView& rule) {
      return rule.Object("override").Text("kind") == "allow";
    };
    return AnyRule(answer, by_operator) ? "an operator allowed the key"
                                        : "no rule counts the request";
  }
  if (answer.Has("rule")) return "rule " + answer.Text("rule") + " decides";
  return outcome;
}

void PrintVerdict(const JsonView& answer, const Console& console) {
  const bool allowed = answer.Bool("allowed");
  if (allowed && answer.Int("status") == 404) {
    console.out << console.Paint("would pass the rules, but no route matches the request",
                                 Style::kWarning);
  } else {
    console.out << console.Paint(allowed ? "would be allowed" : "would be denied",
                                 allowed ? Style::kGood : Style::kBad);
  }
  if (answer.Has("status")) console.out << " (" << answer.Int("status") << ")";
  console.out << ": " << Shown(Decider(answer));
  if (AnyRule(answer, DecidedByPolicy)) console.out << " (the store does not answer)";
  console.out << '\n';
}

std::string RequestLine(const JsonView& request) {
  std::string text = request.Text("method");
  text += (text.empty() ? "" : " ") + request.Text("host") + request.Text("path");
  if (request.Has("query")) text += "?" + request.Text("query");
  return request.Has("client_ip") ? text + " from " + request.Text("client_ip") : text;
}

void PrintRule(const JsonView& rule, const Console& console) {
  const std::string name = console.Paint(Shown(rule.Text("rule")), Style::kStrong);
  if (!rule.Bool("matched")) {
    console.out << '\n' << name << "  does not match: " << Shown(rule.Text("why")) << '\n';
    return;
  }
  const Cell verdict = VerdictOf(rule);
  console.out << '\n' << name << "  " << console.Paint(verdict.text, verdict.style) << '\n';
  Table facts("|");
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) facts.Add({label, text});
  };
  if (rule.Has("limit")) {
    add("quota",
        QuotaOf(rule) + " (" + rule.Text("algorithm") + "), cost " + Count(rule.Int("cost")));
  }
  add("mode", rule.Text("mode") +
                  (rule.Has("on_failure") ? ", on failure " + rule.Text("on_failure") : ""));
  if (rule.Has("match")) add("match", MatchText(rule.Object("match")));
  add("per", rule.Text("per"));
  add("counted by", rule.Text("counted_by"));
  add("key", rule.Text("key"));
  add("stored as", rule.Text("stored_as"));
  const JsonView given = rule.Object("override");
  if (!given.empty()) add("override", OverrideText(given));
  add("why", rule.Text("why"));
  facts.Print(console, "  ");
}

void PrintExplanation(const JsonView& answer, const Console& console) {
  PrintVerdict(answer, console);
  const JsonView request = answer.Object("request");
  if (!request.empty()) console.out << "request: " << Shown(RequestLine(request)) << '\n';
  if (answer.Has("route")) console.out << "route: " << Shown(answer.Text("route")) << '\n';
  for (const JsonView& rule : answer.Objects("rules")) PrintRule(rule, console);
  if (answer.Int("left_out") > 0) {
    console.out << '\n' << Plural(answer.Int("left_out"), "more rule") << " not shown\n";
  }
}

}  // namespace

Result<AdminRequest> RequestFor(const ExplainOptions& options) {
  Result<AdminRequest> result = AdminRequest{.target = "/v1/explain", .body = json::object{}};
  if (!options.selector.rule.empty()) result = options.selector.RequestTo("/v1/explain");
  if (!result) return result;
  json::object& body = *result->body;
  auto request = RequestOf(options);
  if (!request) return std::unexpected(request.error());
  if (request->empty() == options.selector.rule.empty()) {
    return Failure(
        ErrorCode::kBadCharge,
        request->empty()
            ? "describe a request (--path /v1/x --client-ip A ...), or name RULE IDENTITY"
            : "describe a request or name RULE IDENTITY, not both");
  }
  if (!request->empty()) {
    if (!request->contains("path"))
      return Failure(ErrorCode::kBadCharge, "--path is needed, as in --path /v1/login");
    body["request"] = std::move(*request);
    if (options.gateway) body["listener"] = "gateway";
  }
  if (options.gateway && !body.contains("request")) {
    return Failure(ErrorCode::kBadCharge,
                   "--gateway explains a request: add --path /v1/x --client-ip A ...");
  }
  if (options.cost != 0) body["cost"] = options.cost;
  if (!options.lease.empty()) body["lease"] = options.lease;
  return result;
}

int Explain(const ExplainOptions& options, const Console& console) {
  const auto request = RequestFor(options);
  if (request && IsPattern(options.path)) {
    console.err << "tidegate explain: `" << Shown(options.path)
                << "` looks like a pattern; --path is the path of a request, as in /users/42\n";
  }
  return RequestAndPrint("explain", options.client, request, console, PrintExplanation);
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/decide.hpp"

#include <ostream>

#include "cli/exit.hpp"
#include "cli/shown_text.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

AdminQuestion QuestionOf(const DecideOptions& options) {
  json::object body{{"rule", options.rule}, {"identity", options.identity}};
  if (options.cost != 0) body["cost"] = options.cost;
  return {options.peek ? "/v1/peek" : "/v1/decide", std::move(body)};
}

/// ": the store does not answer", followed by the reason if the server reports one.
std::string StoreFailure(const Members& decision) {
  const std::string reason = decision.Text("reason");
  return ": the store does not answer" + (reason.empty() ? "" : " (" + Shown(reason) + ")");
}

void PrintDecision(const Members& decision, const Console& console) {
  const bool allowed = decision.Yes("allowed");
  console.out << Inked(allowed ? "allowed" : "denied", allowed ? Ink::kGood : Ink::kBad,
                       console.colours);
  if (decision.Yes("banned")) {
    console.out << ": banned by an operator";
  } else if (decision.Text("decided_by") == "operator") {
    console.out << " without being counted: by an operator";
  } else if (decision.Has("limit")) {
    console.out << ", " << decision.Whole("remaining") << " of " << decision.Whole("limit")
                << " left";
    if (decision.Text("decided_by") == "local") {
      console.out << " by that node's share" << StoreFailure(decision);
    }
  } else if (decision.Has("rule") && decision.Has("decided_by")) {
    console.out << " without being counted" << StoreFailure(decision);
  }
  if (decision.Has("never")) {
    console.out << ", and it can never pass: the cost is above the limit";
  } else if (decision.Has("retry_after_ms")) {
    console.out << ", try again in " << FormatDuration(decision.Ms("retry_after_ms"));
  }
  console.out << '\n';
}

}  // namespace

int Decide(const DecideOptions& options, const Console& console) {
  const auto client = AdminClient::Make(options.ask, kApiPort, "--server");
  if (!client) return Tell("decide", client.error(), options.ask.json, console);
  Warn("decide", *client, console);
  const auto answer = client->Ask(QuestionOf(options));
  if (!answer) return Tell("decide", answer.error(), options.ask.json, console);
  const Members decision(answer->object);
  if (!decision.Has("allowed")) {
    return Tell("decide",
                {kNoAnswer, client->address().Told() + " does not answer like a tidegate server"},
                false, console);
  }
  if (options.ask.json) {
    console.out << ShownJson(answer->text);
  } else {
    PrintDecision(decision, console);
  }
  return decision.Yes("allowed") ? kOk : kRuntime;
}

}  // namespace tidegate::cli

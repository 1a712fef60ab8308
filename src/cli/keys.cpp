// SPDX-License-Identifier: Apache-2.0
// The commands about one key: decide, inspect and the changes.
#include <algorithm>
#include <expected>
#include <ostream>

#include "base/failure.hpp"
#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/response.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

/// The texts that the commands print after a change; kChanges has one entry per Change.
struct ChangeText {
  std::string_view done;     ///< Printed if the change was made.
  std::string_view nothing;  ///< Printed if there was nothing to change.
};
constexpr ChangeText kChanges[] = {
    {"reset", "nothing to reset (nothing was stored)"},
    {"granted", "nothing to grant (the full quota is left)"},
    {"refunded", "nothing to refund (this id was applied before, or the charge is too old)"},
    {"banned", "nothing to do"},
    {"allowed without being counted", "nothing to do"},
    {"overridden", "nothing to do"},
    {"lifted", "nothing to lift (neither banned, allowed nor overridden)"}};

std::unexpected<Error> Invalid(std::string why) {
  return Failure(ErrorCode::kBadCharge, std::move(why));
}

/// Returns true if the selector is a hashed address that was copied from a listing.
bool IsVeiledName(const KeySelector& selector) {
  constexpr std::string_view kAddress = "client_ip=#";
  // A real key never contains `=#`, because `#` is encoded in keys. An identity may contain it.
  return selector.key.contains("=#") || selector.identity.starts_with(kAddress) ||
         std::ranges::any_of(selector.parts,
                             [&](const std::string& part) { return part.starts_with(kAddress); });
}

std::string StateText(const JsonView& key, std::string_view state) {
  std::string text(state);
  // The cost may be more than is left.
  if (key.Has("cost") && key.Int("cost") != 1) text += " at cost " + Count(key.Int("cost"));
  text += ", " + Count(key.Int("remaining")) + " of " + Count(key.Int("capacity")) + " left";
  if (key.Int("retry_after_ms") > 0) {
    text += ", try again in " + FormatDuration(key.Ms("retry_after_ms"));
  }
  if (key.Int("reset_after_ms") > 0) {
    text += ", full in " + FormatDuration(key.Ms("reset_after_ms"));
  }
  return text;
}

void PrintKey(const JsonView& key, const Console& console) {
  Table facts("|");
  facts.Add({"rule", key.Text("rule")});
  facts.Add({"key", key.Text("key")});
  if (key.Has("stored_as")) facts.Add({"stored as", key.Text("stored_as")});
  facts.Add({"quota", QuotaOf(key) + " (" + key.Text("algorithm") + ")"});
  // An override decides before the stored state.
  const JsonView override = key.Object("override");
  const std::string kind = override.Text("kind");
  const bool passes = kind == "allow" || (kind != "ban" && key.Bool("allowed"));
  const std::string_view state = kind == "ban"     ? "banned"
                                 : kind == "allow" ? "allowed without being counted"
                                 : passes          ? "allowed"
                                                   : "denied";
  facts.Add({"now", Cell(StateText(key, state), passes ? Style::kGood : Style::kBad)});
  if (!key.Bool("tracked"))
    facts.Add({"tracked", "no: nothing is stored, so the full quota is left"});
  const char* label = "state";
  for (const JsonView& field : key.Objects("state")) {
    facts.Add({std::exchange(label, ""), field.Text("name") + " " + field.Text("value")});
  }
  const Style style = override.Has("from") ? Style::kPlain : Style::kWarning;
  facts.Add({"override", override.empty() ? Cell("none") : Cell(OverrideText(override), style)});
  facts.Print(console);
}

void PrintChange(const ChangeOptions& options, const JsonView& answer, const Console& console) {
  const ChangeText& text = kChanges[static_cast<std::size_t>(options.change)];
  const std::string key = Shown(answer.Text("rule") + " " +
                                (answer.Has("key") ? answer.Text("key") : options.selector.Text()));
  if (!answer.Bool("applied")) {
    console.out << console.Paint(text.nothing, Style::kWarning) << ": " << key << '\n';
    return;
  }
  console.out << console.Paint(text.done, Style::kGood) << ": " << key;
  if (answer.Has("expires_ms")) {
    console.out << ", until " << TimeStamp(answer.Int("expires_ms"));
  } else if (options.change == Change::kBan || options.change == Change::kAllow ||
             options.change == Change::kOverride) {
    console.out << ", until it is lifted";
  }
  if (const JsonView before = answer.Object("replaced"); !before.empty()) {
    console.out << " (replaces " << Shown(EndedOverrideText(before)) << ")";
  } else if (const JsonView lifted = answer.Object("lifted"); !lifted.empty()) {
    console.out << " (it was " << Shown(EndedOverrideText(lifted)) << ")";
  }
  console.out << '\n';
  WarnIfNotRecorded(answer, console);
}

AdminRequest RequestFor(const DecideOptions& options) {
  json::object body{{"rule", options.rule}, {"identity", options.identity}};
  if (options.cost != 0) body["cost"] = options.cost;
  return {options.peek ? "/v1/peek" : "/v1/decide", std::move(body)};
}

void PrintDecision(const JsonView& decision, const Console& console) {
  const bool allowed = decision.Bool("allowed");
  console.out << console.Paint(allowed ? "allowed" : "denied",
                               allowed ? Style::kGood : Style::kBad);
  if (decision.Bool("banned")) {
    console.out << ": banned by an operator";
  } else if (decision.Text("decided_by") == "operator") {
    console.out << " without being counted: by an operator";
  } else if (decision.Has("limit")) {
    console.out << ", " << decision.Int("remaining") << " of " << decision.Int("limit") << " left";
    if (decision.Text("decided_by") == "local") {
      console.out << " by that node's share: " << Shown(StoreFailureText(decision));
    }
  } else if (decision.Has("rule") && decision.Has("decided_by")) {
    console.out << " without being counted: " << Shown(StoreFailureText(decision));
  }
  console.out << RetryText(decision) << '\n';
}

}  // namespace

Result<json::object> KeySelector::Body() const {
  const int ways = (identity.empty() ? 0 : 1) + (key.empty() ? 0 : 1) + (parts.empty() ? 0 : 1);
  if (rule.empty()) return Invalid("name the rule: RULE IDENTITY");
  if (ways > 1) {
    return Invalid("name the identity in one way: IDENTITY, --key KEY or --part SOURCE=VALUE");
  }
  if (IsVeiledName(*this)) {
    return Invalid(
        "a key with `=#` has a hash instead of the address: give the address as IDENTITY; with "
        "`metrics.key_names: plain` in the configuration, lists show the addresses");
  }
  json::object body{{"rule", rule}};
  if (!key.empty()) body["key"] = key;
  if (!identity.empty()) body["identity"] = identity;
  if (parts.empty()) return body;
  json::object sources;
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Invalid("--part is SOURCE=VALUE, as in client_ip=203.0.113.7 or header:x-api-key=abc");
    }
    if (!sources.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
      return Invalid("--part names " + part.substr(0, equals) + " twice");
    }
  }
  body["identity"] = std::move(sources);
  return body;
}

Result<AdminRequest> KeySelector::RequestTo(std::string target) const {
  auto body = Body();
  if (!body) return std::unexpected(std::move(body.error()));
  return AdminRequest{.target = std::move(target), .body = *std::move(body), .hints = Hints()};
}

std::vector<Hint> KeySelector::Hints() const {
  // Only the server knows whether a rule without an identity counts by `const`.
  if (!identity.empty() || !key.empty() || !parts.empty()) return {};
  return {{400, "name the identity: IDENTITY, --key KEY or --part SOURCE=VALUE"}};
}

std::string KeySelector::Text() const {
  if (!identity.empty()) return identity;
  if (!key.empty()) return key;
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

Result<AdminRequest> RequestFor(const ChangeOptions& given) {
  ChangeOptions options = given;
  // With --key or --part there is no IDENTITY, and the word in its place is the amount.
  const bool by_option = !options.selector.key.empty() || !options.selector.parts.empty();
  if (options.change == Change::kGrant && by_option && options.amount.empty()) {
    options.amount.swap(options.selector.identity);
  }
  auto request = options.selector.RequestTo("/v1/" + std::string(Name(options.change)));
  if (!request) return request;
  request->changes = true;
  json::object& body = *request->body;
  if (options.change == Change::kGrant) {
    const auto amount = ParseNumber<std::int64_t>(options.amount, 1);
    if (!amount) {
      return Invalid(
          "name the number of units, a whole number of at least 1: RULE IDENTITY AMOUNT");
    }
    body["amount"] = *amount;
  }
  if (options.change == Change::kRefund) {
    if (options.id.empty()) return Invalid("--id ID is needed: a refund applies once per id");
    body["id"] = options.id;
    if (options.cost != 0) body["cost"] = options.cost;
    if (options.age) {
      body["age_ms"] = std::chrono::floor<std::chrono::milliseconds>(*options.age).count();
    }
  }
  if (options.change == Change::kOverride) {
    if (options.limit.empty()) return Invalid("--limit is needed, as in --limit 5000/s");
    body["limit"] = options.limit;
    if (options.burst != 0) body["burst"] = options.burst;
  }
  if (!options.duration.empty()) body["ttl"] = options.duration;
  if (!options.reason.empty()) body["reason"] = options.reason;
  // An override may outlive its rule.
  if (options.change == Change::kLift && options.selector.key.empty()) {
    request->hints.push_back(
        {404, "if the rule was removed, name the key as `tidegate overrides` shows it: --key KEY"});
  }
  return request;
}

int ChangeKey(const ChangeOptions& options, const Console& console) {
  return RequestAndPrint(
      Name(options.change), options.client, RequestFor(options), console,
      [&](const JsonView& answer, const Console& to) { PrintChange(options, answer, to); });
}

int Inspect(const InspectOptions& options, const Console& console) {
  const auto request = options.selector.RequestTo("/v1/inspect");
  return RequestAndPrint("inspect", options.client, request, console, PrintKey);
}

int Decide(const DecideOptions& options, const Console& console) {
  const auto client = AdminClient::Make(options.client, kApiPort, "--server");
  if (!client) return ReportError("decide", client.error(), options.client.json, console);
  WarnAboutToken("decide", *client, console);
  const auto answer = client->Send(RequestFor(options));
  if (!answer) return ReportError("decide", answer.error(), options.client.json, console);
  const JsonView decision(answer->object);
  if (!decision.Has("allowed")) {
    return ReportError(
        "decide",
        {kNoAnswer, client->address().Display() + " does not respond like a tidegate server"},
        false, console);
  }
  if (options.client.json) {
    console.out << ShownJson(answer->text);
  } else {
    PrintDecision(decision, console);
  }
  return decision.Bool("allowed") ? kOk : kRuntime;
}

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_frontend.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "admin/admin_call.hpp"
#include "admin/audit.hpp"
#include "admin/operations.hpp"
#include "admin/override_json.hpp"
#include "frontends/http_access.hpp"
#include "frontends/question.hpp"
#include "frontends/resolve.hpp"
#include "rules/nearest.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

void AnswerText(HttpExchange& exchange, std::string_view text) {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("text/plain; charset=utf-8", text);
}

/// Returns the N of `limit=N`, or `usual` if the query is empty; nullopt if N is not a number or is
/// out of range.
std::optional<std::size_t> LimitIn(std::string_view query, std::size_t usual, std::size_t most) {
  if (query.empty()) return usual;
  constexpr std::string_view kName = "limit=";
  if (!query.starts_with(kName)) return std::nullopt;
  query.remove_prefix(kName.size());
  std::size_t limit = 0;
  const char* const end = query.data() + query.size();
  const auto [rest, error] = std::from_chars(query.data(), end, limit);
  if (error != std::errc{} || rest != end || limit < 1 || limit > most) return std::nullopt;
  return limit;
}

void AnswerBadLimit(HttpExchange& exchange, std::size_t most) {
  AnswerProblem(
      exchange, 400,
      "invalid query: only `limit=N`, with N from 1 to " + std::to_string(most) + ", is allowed");
}

}  // namespace

/// An endpoint of the API. Endpoints without a `get` take POST: they explain, inspect or change.
struct AdminFrontend::Endpoint {
  std::string_view path;
  void (AdminFrontend::*get)(HttpExchange&) = nullptr;
  std::optional<AdminAction> action = std::nullopt;
  Rights needs = Rights::kDecide;

  static std::span<const Endpoint> All() noexcept;
  static const Endpoint* Find(std::string_view path) noexcept {
    for (const Endpoint& endpoint : All()) {
      if (endpoint.path == path) return &endpoint;
    }
    return nullptr;
  }
};

std::span<const AdminFrontend::Endpoint> AdminFrontend::Endpoint::All() noexcept {
  static constexpr std::array<Endpoint, 19> kAll{{
      {"/healthz", nullptr, std::nullopt, Rights::kNone},
      {"/readyz", &AdminFrontend::AnswerReady, std::nullopt, Rights::kNone},
      {"/openapi.json", &AdminFrontend::AnswerDocument, std::nullopt, Rights::kNone},
      {"/metrics", &AdminFrontend::AnswerMetrics},
      {"/v1/status", &AdminFrontend::AnswerStatus},
      {"/v1/rules", &AdminFrontend::AnswerRules},
      {"/v1/hot", &AdminFrontend::AnswerHot},
      {"/v1/overrides", &AdminFrontend::AnswerOverrides},
      {"/v1/audit", &AdminFrontend::AnswerAudit},
      {"/v1/explain"},
      {"/v1/inspect"},
      {"/v1/reset", nullptr, AdminAction::kReset, Rights::kAll},
      {"/v1/grant", nullptr, AdminAction::kGrant, Rights::kAll},
      {"/v1/refund", nullptr, AdminAction::kRefund, Rights::kAll},
      {"/v1/ban", nullptr, AdminAction::kBan, Rights::kAll},
      {"/v1/allow", nullptr, AdminAction::kAllow, Rights::kAll},
      {"/v1/override", nullptr, AdminAction::kOverride, Rights::kAll},
      {"/v1/lift", nullptr, AdminAction::kLift, Rights::kAll},
      {"/v1/reload", nullptr, AdminAction::kReload, Rights::kAll},
  }};
  return kAll;
}

std::vector<std::string_view> AdminFrontend::Paths() {
  std::vector<std::string_view> paths;
  for (const Endpoint& endpoint : Endpoint::All()) paths.push_back(endpoint.path);
  return paths;
}

AdminFrontend::AdminFrontend(AdminContext& context, AuthFailures& failures, Sources sources)
    : context_(context),
      failures_(failures),
      probe_quota_(Quota::Make({.limit = 1}).value()),
      sources_(std::move(sources)) {}

void AdminFrontend::Handle(HttpExchange& exchange) noexcept {
  const std::string_view path = exchange.head().path;
  if (const Endpoint* const endpoint = Endpoint::Find(path)) return Answer(exchange, *endpoint);
  const std::vector<std::string_view> known = Paths();
  const std::string meant = DidYouMean(path, known);
  AnswerProblem(exchange, 404,
                "unknown endpoint" + (meant.empty() ? "; there" : meant + " There") +
                    " are /healthz, /readyz, /openapi.json, /metrics and, under /v1, "
                    "status, rules, hot, overrides, audit, explain, inspect, reload and the "
                    "changes of keys: GET /openapi.json describes all endpoints");
}

std::optional<std::size_t> AdminFrontend::OnHead(HttpExchange& exchange) noexcept {
  const net::HttpHead& head = exchange.head();
  const Endpoint* const endpoint = Endpoint::Find(head.path);
  const bool posts = endpoint != nullptr && endpoint->get == nullptr &&
                     endpoint->needs != Rights::kNone && head.method == "POST";
  if (!posts) {
    Handle(exchange);  // No other endpoint takes a body.
    return std::nullopt;
  }
  return MayAsk(exchange, *endpoint) ? std::optional(kAnyBody) : std::nullopt;
}

void AdminFrontend::Answer(HttpExchange& exchange, const Endpoint& endpoint) {
  const net::HttpHead& head = exchange.head();
  const bool reads = endpoint.get != nullptr || endpoint.needs == Rights::kNone;
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (reads && !get) {
    return AnswerProblem(exchange, 405, "use GET", {}, "Allow: GET, HEAD\r\n");
  }
  if (!reads && head.method != "POST") {
    return AnswerProblem(exchange, 405, "use POST with a JSON body", {}, "Allow: POST\r\n");
  }
  if (!MayAsk(exchange, endpoint)) return;
  if (endpoint.get != nullptr) return (this->*endpoint.get)(exchange);
  if (reads) return AnswerText(exchange, "ok\n");
  Post(exchange, endpoint);
}

bool AdminFrontend::MayAsk(HttpExchange& exchange, const Endpoint& endpoint) {
  const net::HttpHead& head = exchange.head();
  const bool probe = endpoint.path == "/healthz" || endpoint.path == "/readyz";
  if (!probe && PageOf(head) == Page::kForeign) {
    AnswerProblem(exchange, 403, "requests of web pages of other origins are rejected");
    return false;
  }
  if (endpoint.needs == Rights::kNone) return true;
  if (MayBeRebound(exchange, access(), ListenerId::kAdmin)) {
    AnswerProblem(exchange, 403, kUseAddressAsHost);
    return false;
  }
  const bool posts = endpoint.get == nullptr;
  if (posts && !AcceptsBody(exchange)) return false;
  return Authorize(exchange, access(), ListenerId::kAdmin, TokenFields::kOwn, endpoint.needs,
                   failures_);
}

void AdminFrontend::AnswerReady(HttpExchange& exchange) {
  if (sources_.draining()) return AnswerProblem(exchange, 503, "shutting down");
  // A peek at a key that no request uses: the probe goes through the store like every call.
  DecisionCall& probe = context_.pipeline.Begin();
  probe.kind = Call::Kind::kPeek;
  probe.matched.Add({.rule = "readiness",
                     .identity = "probe",
                     .quota = &probe_quota_,
                     .on_failure = OnFailure::kClosed},
                    nullptr);
  probe.Attach<HttpExchange*>(&exchange);
  probe.Start(this);
}

void AdminFrontend::OnDecided(DecisionCall& probe) noexcept {
  HttpExchange& exchange = *probe.Attached<HttpExchange*>();
  const std::optional<Error> error = std::move(probe.error);
  const bool answered = !error && probe.decisions.front().decided_by == DecidedBy::kStore;
  probe.Drop();
  if (answered) return AnswerText(exchange, "ready\n");
  // Failure policies handle an outage. If the nodes reported that they are not ready, no request
  // would reach them, and every `open` rule would in effect be closed. Earlier probes do not
  // matter: a node that has decided requests through the store was ready, whether it was probed or
  // not.
  if (sources_.store_answered()) {
    return AnswerText(exchange, "ready, but the store does not answer\n");
  }
  // Probes need no authentication, so only the admin API reports the reason.
  AnswerProblem(exchange, 503,
                error ? "the store does not answer: " + error->message
                      : "the store has not answered yet: see /v1/status");
}

void AdminFrontend::AnswerDocument(HttpExchange& exchange) {
  exchange.Begin(200);
  exchange.End("application/json", AdminOpenApiJson());
}

void AdminFrontend::AnswerMetrics(HttpExchange& exchange) {
  const std::string text = sources_.metrics();
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("text/plain; version=0.0.4; charset=utf-8", text);
}

void AdminFrontend::AnswerStatus(HttpExchange& exchange) {
  AnswerJson(exchange, sources_.status());
}

void AdminFrontend::AnswerRules(HttpExchange& exchange) { AnswerJson(exchange, sources_.rules()); }

void AdminFrontend::AnswerHot(HttpExchange& exchange) {
  constexpr std::size_t kMost = 100;
  const auto limit = LimitIn(exchange.head().query, 20, kMost);
  if (!limit) return AnswerBadLimit(exchange, kMost);
  AnswerJson(exchange, sources_.hot(*limit));
}

void AdminFrontend::AnswerOverrides(HttpExchange& exchange) {
  boost::json::object out =
      OverridesJson(*context_.pipeline.overrides(), *context_.snapshot().rules);
  for (auto& member : AgeJson(context_.fleet_register))
    out[member.key()] = std::move(member.value());
  AnswerJson(exchange, boost::json::serialize(out) + "\n");
}

void AdminFrontend::AnswerAudit(HttpExchange& exchange) {
  const auto limit = LimitIn(exchange.head().query, 100, FleetRegister::kRecords);
  if (!limit) return AnswerBadLimit(exchange, FleetRegister::kRecords);
  const bool local = context_.fleet_register.local();
  context_.fleet_register.Records(
      *limit, [&exchange, local](const Result<FleetRegister::Audit>& audit) {
        if (!audit) {
          return AnswerProblem(exchange, 503,
                               "cannot read the audit: " + audit.error().message + "; try again");
        }
        boost::json::array entries;
        for (const FleetRegister::Record& record : audit->records) {
          const auto entry = AuditEntry::Parse(record.text);
          if (!entry) continue;
          entries.push_back(boost::json::object{{"time_ms", record.time_ms},
                                                {"node", entry->node},
                                                {"by", entry->by},
                                                {"from", entry->from},
                                                {"action", entry->action},
                                                {"rule", entry->rule},
                                                {"key", entry->key},
                                                {"detail", entry->detail},
                                                {"applied", record.applied}});
        }
        const FleetRegister::History& history = audit->history;
        boost::json::object kept{{"kept_in", local ? "memory" : "redis"},
                                 {"since_ms", history.since_ms},
                                 {"complete", history.complete()},
                                 {"missing_changes", history.missing_changes},
                                 {"missing_failures", history.missing_failures}};
        if (history.lost_ms) kept["lost_ms"] = *history.lost_ms;
        AnswerJson(exchange, boost::json::serialize(boost::json::object{
                                 {"entries", std::move(entries)}, {"history", std::move(kept)}}) +
                                 "\n");
      });
}

void AdminFrontend::Post(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = exchange.memory();
  Question question(memory);
  if (const auto bad = ReadQuestion(exchange.body(), question, memory)) {
    return AnswerProblem(exchange, 400, bad->message, bad->pointer);
  }
  constexpr unsigned kKeyMembers = Question::kRule | Question::kIdentity;
  const ActionMembers members =
      endpoint.action ? MembersOf(*endpoint.action)
      : endpoint.path == "/v1/explain"
          ? ActionMembers{kKeyMembers | Question::kKey | Question::kRequest | Question::kCost |
                              Question::kLease | Question::kDoor,
                          0}
          : ActionMembers{kKeyMembers | Question::kKey, 0};
  if (auto bad = CheckMembers(question, members.may, members.must, endpoint.path)) {
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  if (endpoint.action == AdminAction::kReload) {
    return ReloadFor(context_, exchange, CallerName(exchange, access()));
  }
  if (!context_.has_fleet_key) {
    const std::string problem = context_.store_problem();
    const std::string why =
        "this node has not received the fleet's HMAC key yet, and cannot name keys without it: " +
        (problem.empty() ? "Redis has not answered since the start" : problem);
    if (!endpoint.action) return AnswerProblem(exchange, 503, why);
    return AnswerFailedChange(exchange, 503, "not applied: " + why + "; try again",
                              ChangeOutcome::kNotApplied);
  }
  if (endpoint.action) {
    return ChangeKey(context_, exchange, question, *endpoint.action,
                     CallerName(exchange, access()));
  }
  if (endpoint.path == "/v1/explain") return Explain(context_, exchange, question);
  InspectKey(context_, exchange, question);
}

}  // namespace tidegate

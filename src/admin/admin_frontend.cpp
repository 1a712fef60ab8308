// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_frontend.hpp"

#include <algorithm>
#include <array>

#include "admin/audit.hpp"
#include "base/message_text.hpp"
#include "base/units.hpp"
#include "frontends/http_access.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

void AnswerText(HttpExchange& exchange, std::string_view text,
                std::string_view type = "text/plain; charset=utf-8") {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End(type, text);
}

/// Returns the N of the query `limit=N`, or `usual` if there is no query. Answers the exchange and
/// returns nullopt if N is not a number from 1 to `most`.
std::optional<std::size_t> ReadLimit(HttpExchange& exchange, std::size_t usual, std::size_t most) {
  const std::string_view query = exchange.head().query;
  if (query.empty()) return usual;
  constexpr std::string_view kName = "limit=";
  if (query.starts_with(kName)) {
    const auto limit = ParseNumber<std::size_t>(query.substr(kName.size()), 1, most);
    if (limit) return limit;
  }
  AnswerProblem(
      exchange, 400,
      "invalid query: only `limit=N`, with N from 1 to " + std::to_string(most) + ", is allowed");
  return std::nullopt;
}

constexpr unsigned kKeyMembers = Question::kRule | Question::kIdentity | Question::kKey;
constexpr unsigned kOverrideMembers = kKeyMembers | Question::kTtl | Question::kReason;

}  // namespace

/// An endpoint of the API. Endpoints without a `get` take POST: they explain, inspect or change.
struct AdminFrontend::Endpoint {
  std::string_view path;
  void (AdminFrontend::*get)(HttpExchange&) = nullptr;
  Rights needs = Rights::kDecide;
  unsigned may = 0;   ///< The members that a body may have.
  unsigned must = 0;  ///< The members that a body must have.
  std::optional<AdminAction> action = std::nullopt;

  static std::span<const Endpoint> All() noexcept;
  static const Endpoint* Find(std::string_view path) noexcept {
    const auto found = std::ranges::find(All(), path, &Endpoint::path);
    return found == All().end() ? nullptr : &*found;
  }
};

std::span<const AdminFrontend::Endpoint> AdminFrontend::Endpoint::All() noexcept {
  using enum Question::Member;
  constexpr auto kChange = Rights::kAll;
  static constexpr std::array<Endpoint, 19> kAll{{
      {"/healthz", nullptr, Rights::kNone},
      {"/readyz", &AdminFrontend::AnswerReady, Rights::kNone},
      {"/openapi.json", &AdminFrontend::AnswerDocument, Rights::kNone},
      {"/metrics", &AdminFrontend::AnswerMetrics},
      {"/v1/status", &AdminFrontend::AnswerReport<&Sources::status>},
      {"/v1/rules", &AdminFrontend::AnswerReport<&Sources::rules>},
      {"/v1/hot", &AdminFrontend::AnswerHot},
      {"/v1/overrides", &AdminFrontend::AnswerOverrides},
      {"/v1/audit", &AdminFrontend::AnswerAudit},
      {"/v1/explain", nullptr, Rights::kDecide,
       kKeyMembers | kRequest | kCost | kLease | kListener},
      {"/v1/inspect", nullptr, Rights::kDecide, kKeyMembers},
      {"/v1/reset", nullptr, kChange, kKeyMembers, 0, AdminAction::kReset},
      {"/v1/grant", nullptr, kChange, kKeyMembers | kAmount, kAmount, AdminAction::kGrant},
      {"/v1/refund", nullptr, kChange, kKeyMembers | kId | kCost | kAge, kId, AdminAction::kRefund},
      {"/v1/ban", nullptr, kChange, kOverrideMembers, 0, AdminAction::kBan},
      {"/v1/allow", nullptr, kChange, kOverrideMembers, 0, AdminAction::kAllow},
      {"/v1/override", nullptr, kChange, kOverrideMembers | kLimit | kBurst, kLimit,
       AdminAction::kOverride},
      {"/v1/lift", nullptr, kChange, kKeyMembers, 0, AdminAction::kLift},
      {"/v1/reload", nullptr, kChange, 0, 0, AdminAction::kReload},
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
  return MayUse(exchange, *endpoint) ? std::optional(kAnyBody) : std::nullopt;
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
  if (!MayUse(exchange, endpoint)) return;
  if (endpoint.get != nullptr) return (this->*endpoint.get)(exchange);
  if (reads) return AnswerText(exchange, "ok\n");
  Post(exchange, endpoint);
}

bool AdminFrontend::MayUse(HttpExchange& exchange, const Endpoint& endpoint) {
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
  // The probe peeks at a key that no request uses, so it goes through the store like every call.
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
  // would reach them, and every `open` rule would in effect be closed.
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
  AnswerText(exchange, sources_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
}

void AdminFrontend::AnswerHot(HttpExchange& exchange) {
  if (const auto limit = ReadLimit(exchange, 20, 100)) AnswerJson(exchange, sources_.hot(*limit));
}

void AdminFrontend::AnswerOverrides(HttpExchange& exchange) {
  boost::json::object out =
      OverridesJson(*context_.pipeline.overrides(), *context_.snapshot().rules);
  AddAll(out, AgeJson(context_.shared_overrides));
  AnswerJson(exchange, out);
}

void AdminFrontend::AnswerAudit(HttpExchange& exchange) {
  const auto limit = ReadLimit(exchange, 100, SharedOverrides::kRecords);
  if (!limit) return;
  const bool local = context_.shared_overrides.local();
  context_.shared_overrides.Records(
      *limit, [&exchange, local](const Result<SharedOverrides::Audit>& audit) {
        if (!audit) {
          return AnswerProblem(exchange, 503,
                               "cannot read the audit: " + audit.error().message + "; try again");
        }
        boost::json::array entries;
        for (const SharedOverrides::Record& record : audit->records) {
          const auto entry = AuditEntry::Parse(record.text);
          if (!entry) continue;
          boost::json::object shown{{"time_ms", record.time_ms}};
          AddAll(shown, entry->Json());
          shown["applied"] = record.applied;
          entries.push_back(std::move(shown));
        }
        const SharedOverrides::History& history = audit->history;
        boost::json::object kept{{"kept_in", local ? "memory" : "redis"},
                                 {"since_ms", history.since_ms},
                                 {"complete", history.complete()},
                                 {"missing_changes", history.missing_changes},
                                 {"missing_failures", history.missing_failures}};
        if (history.lost_ms) kept["lost_ms"] = *history.lost_ms;
        AnswerJson(exchange, {{"entries", std::move(entries)}, {"history", std::move(kept)}});
      });
}

void AdminFrontend::Post(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = exchange.memory();
  Question question(memory);
  if (const auto bad = ReadQuestion(exchange.body(), question, memory)) {
    return AnswerProblem(exchange, 400, bad->message, bad->pointer);
  }
  if (auto bad = CheckMembers(question, endpoint.may, endpoint.must, endpoint.path)) {
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  if (endpoint.action == AdminAction::kReload) {
    return ReloadFor(context_, exchange, CallerName(exchange, access()));
  }
  if (!context_.has_fleet_key) {
    const std::string problem = context_.StoreProblem();
    const std::string why =
        "this node has not received the fleet's HMAC key yet, and cannot name keys without it: " +
        (problem.empty() ? "Redis has not answered since the start" : problem);
    if (!endpoint.action) return AnswerProblem(exchange, 503, why);
    return AnswerProblemWith(exchange, 503, "not applied: " + why + "; try again",
                             {{"outcome", JsonText(Name(ChangeOutcome::kNotApplied))}});
  }
  if (endpoint.action) {
    return ChangeKey(context_, exchange, question, *endpoint.action,
                     CallerName(exchange, access()));
  }
  if (endpoint.path == "/v1/explain") return Explain(context_, exchange, question);
  InspectKey(context_, exchange, question);
}

}  // namespace tidegate

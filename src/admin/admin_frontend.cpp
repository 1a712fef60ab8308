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

/// The number behind `limit=`; nothing: it is none, or out of range.
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
      "the query may say `limit=N`, from 1 to " + std::to_string(most) + ", and nothing else");
}

}  // namespace

/// Endpoints without a `get` take POST: to explain, to inspect, or to change something.
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

AdminFrontend::AdminFrontend(AdminContext& context, Refusals& refusals, Sources sources)
    : context_(context),
      refusals_(refusals),
      probe_quota_(Quota::Make({.limit = 1}).value()),
      sources_(std::move(sources)) {}

void AdminFrontend::Handle(HttpExchange& exchange) noexcept {
  const std::string_view path = exchange.head().path;
  if (const Endpoint* const endpoint = Endpoint::Find(path)) return Answer(exchange, *endpoint);
  const std::vector<std::string_view> known = Paths();
  const std::string meant = DidYouMean(path, known);
  AnswerProblem(exchange, 404,
                "there is nothing here" + (meant.empty() ? "; there" : meant + " There") +
                    " are /healthz, /readyz, /openapi.json, /metrics and, under /v1, "
                    "status, rules, hot, "
                    "overrides, audit, explain, inspect, reload and what changes keys");
}

void AdminFrontend::Answer(HttpExchange& exchange, const Endpoint& endpoint) {
  const net::HttpHead& head = exchange.head();
  const bool reads = endpoint.get != nullptr || endpoint.needs == Rights::kNone;
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (reads && !get) {
    return AnswerProblem(exchange, 405, "this can be read with GET", {}, "Allow: GET, HEAD\r\n");
  }
  if (!reads && head.method != "POST") {
    return AnswerProblem(exchange, 405, "ask with POST and a JSON body", {}, "Allow: POST\r\n");
  }
  if (!MayAsk(exchange, endpoint)) return;
  if (endpoint.get != nullptr) return (this->*endpoint.get)(exchange);
  if (reads) return AnswerText(exchange, "ok\n");
  Post(exchange, endpoint);
}

bool AdminFrontend::MayAsk(HttpExchange& exchange, const Endpoint& endpoint) {
  if (endpoint.needs == Rights::kNone) return true;
  const net::HttpHead& head = exchange.head();
  // A web page has no token to authenticate with.
  const bool authenticates = access().of(ListenerId::kAdmin).Required(access().tokens);
  if (!authenticates && !NamesAddress(head.host)) {
    AnswerProblem(exchange, 403,
                  "name this machine by its address or as localhost: any other name may have been "
                  "made to lead here for somebody's web page");
    return false;
  }
  if (PageOf(head) == Page::kForeign) {
    AnswerProblem(exchange, 403, "requests of other origins' web pages are refused");
    return false;
  }
  const bool posts = endpoint.get == nullptr;
  if (posts && !IsJson(head)) {
    AnswerProblem(exchange, 415,
                  "send JSON and say so: `Content-Type: application/json` (curl does with --json)");
    return false;
  }
  return Authorize(exchange, access(), ListenerId::kAdmin, TokenFields::kOwn, endpoint.needs,
                   refusals_);
}

void AdminFrontend::AnswerReady(HttpExchange& exchange) {
  if (sources_.draining()) return AnswerProblem(exchange, 503, "shutting down");
  // A peek at a key that no request has: it takes the way of every call to the store and back.
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
  if (answered) {
    was_ready_ = true;
    return AnswerText(exchange, "ready\n");
  }
  // Failure policies are there for an outage: a fleet that calls itself unready then would turn
  // every `open` into closed.
  if (was_ready_) return AnswerText(exchange, "ready, but the store does not answer\n");
  // Everybody may probe, so the reason is told only by the admin API.
  AnswerProblem(exchange, 503,
                error ? "the store does not answer: " + error->message
                      : "the store has not answered yet: /v1/status says why");
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
  context_.fleet_register.Records(*limit, [&exchange](
                                              Result<std::vector<FleetRegister::Record>> records) {
    if (!records) return AnswerProblem(exchange, 503, records.error().message);
    boost::json::array entries;
    for (const FleetRegister::Record& record : *records) {
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
    AnswerJson(exchange,
               boost::json::serialize(boost::json::object{{"entries", std::move(entries)}}) + "\n");
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
    return ReloadFor(context_, exchange, CallerName(exchange, access().tokens));
  }
  if (!context_.has_fleet_key) {
    const std::string problem = context_.store_problem();
    return AnswerProblem(
        exchange, 503,
        "this node has not received the fleet's HMAC key yet, and cannot name keys without it: " +
            (problem.empty() ? "Redis has not answered since the start" : problem));
  }
  if (endpoint.action) {
    return ChangeKey(context_, exchange, question, *endpoint.action,
                     CallerName(exchange, access().tokens));
  }
  if (endpoint.path == "/v1/explain") return Explain(context_, exchange, question);
  InspectKey(context_, exchange, question);
}

}  // namespace tidegate

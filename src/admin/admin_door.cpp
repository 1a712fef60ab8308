// SPDX-License-Identifier: Apache-2.0
#include "admin/admin_door.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "admin/audit.hpp"
#include "admin/change.hpp"
#include "admin/explain.hpp"
#include "admin/inspect.hpp"
#include "admin/json_answer.hpp"
#include "admin/json_text.hpp"
#include "admin/override_json.hpp"
#include "frontends/http_admission.hpp"
#include "frontends/question.hpp"
#include "frontends/resolve.hpp"
#include "frontends/web_page.hpp"
#include "rules/nearest.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

/// A look at a key that nobody is counted by: it takes the way of every question to the store and
/// back.
struct Probe : Call {
  Probe(HttpExchange& of, bool& ready) : exchange(of), was_ready(ready) {}

  HttpExchange& exchange;
  bool& was_ready;
  Quota quota = Quota::Make({.limit = 1}).value();
  std::array<Charge, 1> probes{{{.rule = "readiness",
                                 .identity = "probe",
                                 .quota = &quota,
                                 .on_failure = OnFailure::kClosed}}};
  std::array<Decision, 1> looks;
};

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

/// What can be asked. Those without a `get` are asked with POST: to explain, to inspect, or to
/// change something.
struct AdminDoor::Endpoint {
  std::string_view path;
  void (AdminDoor::*get)(HttpExchange&) = nullptr;
  std::optional<AdminAction> action = std::nullopt;
  enum class To : std::uint8_t { kEverybody, kAsk, kAll } to = To::kAsk;

  static std::span<const Endpoint> All() noexcept;
  static const Endpoint* Find(std::string_view path) noexcept {
    for (const Endpoint& endpoint : All()) {
      if (endpoint.path == path) return &endpoint;
    }
    return nullptr;
  }
};

std::span<const AdminDoor::Endpoint> AdminDoor::Endpoint::All() noexcept {
  static constexpr std::array<Endpoint, 19> kAll{{
      {"/healthz", nullptr, std::nullopt, To::kEverybody},
      {"/readyz", &AdminDoor::AnswerReady, std::nullopt, To::kEverybody},
      {"/openapi.json", &AdminDoor::AnswerDocument, std::nullopt, To::kEverybody},
      {"/metrics", &AdminDoor::AnswerMetrics},
      {"/v1/status", &AdminDoor::AnswerStatus},
      {"/v1/rules", &AdminDoor::AnswerRules},
      {"/v1/hot", &AdminDoor::AnswerHot},
      {"/v1/overrides", &AdminDoor::AnswerOverrides},
      {"/v1/audit", &AdminDoor::AnswerAudit},
      {"/v1/explain"},
      {"/v1/inspect"},
      {"/v1/reset", nullptr, AdminAction::kReset, To::kAll},
      {"/v1/grant", nullptr, AdminAction::kGrant, To::kAll},
      {"/v1/refund", nullptr, AdminAction::kRefund, To::kAll},
      {"/v1/ban", nullptr, AdminAction::kBan, To::kAll},
      {"/v1/allow", nullptr, AdminAction::kAllow, To::kAll},
      {"/v1/override", nullptr, AdminAction::kOverride, To::kAll},
      {"/v1/lift", nullptr, AdminAction::kLift, To::kAll},
      {"/v1/reload", nullptr, AdminAction::kReload, To::kAll},
  }};
  return kAll;
}

std::vector<std::string_view> AdminDoor::Paths() {
  std::vector<std::string_view> paths;
  for (const Endpoint& endpoint : Endpoint::All()) paths.push_back(endpoint.path);
  return paths;
}

AdminDoor::AdminDoor(AdminDesk& desk, const Admission& admission, Refusals& refusals,
                     Sources sources)
    : desk_(desk), admission_(admission), refusals_(refusals), sources_(std::move(sources)) {}

void AdminDoor::Handle(HttpExchange& exchange) noexcept {
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

void AdminDoor::Answer(HttpExchange& exchange, const Endpoint& endpoint) {
  const net::HttpHead& head = exchange.head();
  const bool reads = endpoint.get != nullptr || endpoint.to == Endpoint::To::kEverybody;
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (reads && !get) {
    return AnswerProblem(exchange, 405, "this can be read with GET", {}, "Allow: GET, HEAD\r\n");
  }
  if (!reads && head.method != "POST") {
    return AnswerProblem(exchange, 405, "ask with POST and a JSON body", {}, "Allow: POST\r\n");
  }
  if (!MayCome(exchange, endpoint)) return;
  if (endpoint.get != nullptr) return (this->*endpoint.get)(exchange);
  if (reads) return AnswerText(exchange, "ok\n");
  Post(exchange, endpoint);
}

bool AdminDoor::MayCome(HttpExchange& exchange, const Endpoint& endpoint) {
  if (endpoint.to == Endpoint::To::kEverybody) return true;
  const net::HttpHead& head = exchange.head();
  // Where callers show who they are a page cannot: it has no token.
  const bool known = admission_.Required(*desk_.policy->tokens);
  if (!known && !NamesAddress(head.host)) {
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
  return Admit(exchange, admission_, *desk_.policy->tokens, TokenFields::kOwn,
               endpoint.to == Endpoint::To::kAll ? Rights::kAll : Rights::kAsk, refusals_);
}

void AdminDoor::AnswerReady(HttpExchange& exchange) {
  if (sources_.draining()) return AnswerProblem(exchange, 503, "shutting down");
  auto* const probe =
      new (exchange.memory().allocate(sizeof(Probe), alignof(Probe))) Probe(exchange, was_ready_);
  probe->kind = Call::Kind::kPeek;
  probe->charges = probe->probes;
  probe->decisions = probe->looks;
  probe->finished = [](Call& call) noexcept {
    Probe& mine = static_cast<Probe&>(call);
    HttpExchange& of = mine.exchange;
    const std::optional<Error> error = std::move(mine.error);
    const bool answered = !error && mine.looks[0].decided_by == DecidedBy::kStore;
    if (answered) mine.was_ready = true;
    const bool was_ready = mine.was_ready;
    mine.~Probe();
    if (answered) return AnswerText(of, "ready\n");
    // Failure policies are there for an outage: a fleet that calls itself unready then would turn
    // every `open` into closed.
    if (was_ready) return AnswerText(of, "ready, but the store does not answer\n");
    // Why is for those who may ask: everybody may come here.
    AnswerProblem(of, 503,
                  error ? "the store does not answer: " + error->message
                        : "the store has not answered yet: /v1/status says why");
  };
  desk_.store.Start(*probe);
}

void AdminDoor::AnswerDocument(HttpExchange& exchange) {
  exchange.Begin(200);
  exchange.End("application/json", AdminOpenApiJson());
}

void AdminDoor::AnswerMetrics(HttpExchange& exchange) {
  const std::string text = sources_.metrics();
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("text/plain; version=0.0.4; charset=utf-8", text);
}

void AdminDoor::AnswerStatus(HttpExchange& exchange) { AnswerJson(exchange, sources_.status()); }

void AdminDoor::AnswerRules(HttpExchange& exchange) { AnswerJson(exchange, sources_.rules()); }

void AdminDoor::AnswerHot(HttpExchange& exchange) {
  constexpr std::size_t kMost = 100;
  const auto limit = LimitIn(exchange.head().query, 20, kMost);
  if (!limit) return AnswerBadLimit(exchange, kMost);
  AnswerJson(exchange, sources_.hot(*limit));
}

void AdminDoor::AnswerOverrides(HttpExchange& exchange) {
  boost::json::object out = OverridesJson(*desk_.overrides.table(), *desk_.policy->rules);
  for (auto& member : AgeJson(desk_.fleet_register)) out[member.key()] = std::move(member.value());
  AnswerJson(exchange, boost::json::serialize(out) + "\n");
}

void AdminDoor::AnswerAudit(HttpExchange& exchange) {
  const auto limit = LimitIn(exchange.head().query, 100, FleetRegister::kRecords);
  if (!limit) return AnswerBadLimit(exchange, FleetRegister::kRecords);
  desk_.fleet_register.Records(*limit, [&exchange](
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

void AdminDoor::Post(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = exchange.memory();
  Question question(memory);
  if (const auto bad = ReadQuestion(exchange.body(), question, memory)) {
    return AnswerProblem(exchange, 400, bad->message, bad->pointer);
  }
  constexpr unsigned kWhom = Question::kRule | Question::kIdentity;
  const ActionMembers members =
      endpoint.action ? MembersOf(*endpoint.action)
      : endpoint.path == "/v1/explain"
          ? ActionMembers{kWhom | Question::kKey | Question::kRequest | Question::kCost |
                              Question::kLease | Question::kDoor,
                          0}
          : ActionMembers{kWhom | Question::kKey, 0};
  if (auto bad = CheckMembers(question, members.may, members.must, endpoint.path)) {
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  if (endpoint.action == AdminAction::kReload) {
    return ReloadFor(desk_, exchange, CallerOf(exchange, *desk_.policy->tokens));
  }
  if (!desk_.named) {
    const std::string trouble = desk_.trouble();
    return AnswerProblem(
        exchange, 503,
        "what keys are called has not been agreed on with the fleet yet: " +
            (trouble.empty() ? "Redis has not answered since the start" : trouble));
  }
  if (endpoint.action) {
    return ChangeKey(desk_, exchange, question, *endpoint.action,
                     CallerOf(exchange, *desk_.policy->tokens));
  }
  if (endpoint.path == "/v1/explain") return Explain(desk_, exchange, question);
  InspectKey(desk_, exchange, question);
}

}  // namespace tidegate

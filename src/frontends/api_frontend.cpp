// SPDX-License-Identifier: Apache-2.0
#include "frontends/api_frontend.hpp"

#include <array>
#include <string>
#include <utility>

#include "frontends/forward_auth.hpp"
#include "frontends/http_access.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

constexpr unsigned kKeyMembers = Question::kRule | Question::kIdentity | Question::kRequest |
                                 Question::kKey | Question::kLimit | Question::kBurst |
                                 Question::kAlgorithm;
constexpr unsigned kWithCost = kKeyMembers | Question::kCost;
constexpr std::string_view kOpenApiPath = "/openapi.json";

}  // namespace

struct ApiFrontend::Endpoint {
  std::string_view path;
  Call::Kind kind;
  unsigned members;   ///< The members that the body may have.
  unsigned required;  ///< The members that the body must have.
  Rights needs = Rights::kDecide;
};

/// Several calls that are answered together. Lives in the memory of its exchange.
struct ApiFrontend::Batch {
  explicit Batch(HttpExchange& of) : exchange(of) {}

  HttpExchange& exchange;
  std::span<DecisionCall*> calls;
  std::size_t open = 0;  ///< Number of calls without an answer.
};

std::span<const ApiFrontend::Endpoint> ApiFrontend::Endpoints() noexcept {
  using Kind = Call::Kind;
  static constexpr std::array<Endpoint, 8> kEndpoints{{
      {"/v1/decide", Kind::kApply, kWithCost, 0},
      {"/v1/peek", Kind::kPeek, kWithCost, 0},
      {"/v1/acquire", Kind::kApply, kWithCost | Question::kLease, Question::kLease},
      // Callers with Rights::kDecide must not renew the leases of other callers. They must not
      // debit either: one debit can exceed the limit by far, and so block the key of another
      // caller.
      {"/v1/renew", Kind::kRenew, kKeyMembers | Question::kLease, Question::kLease, Rights::kAll},
      {"/v1/release", Kind::kRelease, kKeyMembers | Question::kLease, Question::kLease,
       Rights::kAll},
      {"/v1/debit", Kind::kDebit, kWithCost, Question::kCost, Rights::kAll},
      {"/v1/refund", Kind::kRefund, kWithCost | Question::kId | Question::kAge, Question::kId,
       Rights::kAll},
      {"/v1/decide/batch", Kind::kApply, kWithCost, 0},
  }};
  return kEndpoints;
}

const ApiFrontend::Endpoint* ApiFrontend::FindEndpoint(std::string_view path) noexcept {
  for (const Endpoint& endpoint : Endpoints()) {
    if (endpoint.path == path) return &endpoint;
  }
  return nullptr;
}

std::vector<std::string_view> ApiFrontend::Paths() {
  std::vector<std::string_view> paths{kOpenApiPath, kAuthPath};
  for (const Endpoint& endpoint : Endpoints()) paths.push_back(endpoint.path);
  return paths;
}

void ApiFrontend::Handle(HttpExchange& exchange) noexcept {
  const net::HttpHead& head = exchange.head();
  if (const Endpoint* const endpoint = FindEndpoint(head.path)) {
    if (!MayUse(exchange, *endpoint)) return;
    return endpoint->path == "/v1/decide/batch" ? DecideBatch(exchange, *endpoint)
                                                : Decide(exchange, *endpoint);
  }
  if (IsForwardAuth(head.path)) return ForwardAuth(exchange);
  if (head.path == kOpenApiPath) {
    if (PageOf(head) == Page::kForeign) {
      return AnswerProblem(exchange, 403, "requests of web pages of other origins are rejected");
    }
    if (head.method != "GET" && head.method != "HEAD") {
      return AnswerProblem(exchange, 405, "use GET to read the document", {},
                           "Allow: GET, HEAD\r\n");
    }
    exchange.Begin(200);
    return exchange.End("application/json", OpenApiJson());
  }
  AnswerProblem(exchange, 404,
                "unknown endpoint: use POST /v1/decide; GET /openapi.json describes all endpoints");
}

std::optional<std::size_t> ApiFrontend::OnHead(HttpExchange& exchange) noexcept {
  const std::string_view path = exchange.head().path;
  if (const Endpoint* const endpoint = FindEndpoint(path)) {
    return MayUse(exchange, *endpoint) ? std::optional(kAnyBody) : std::nullopt;
  }
  if (!IsForwardAuth(path)) {
    Handle(exchange);  // Answers without waiting for the body, which no other endpoint needs.
    return std::nullopt;
  }
  // Some proxies forward the client's body. The endpoint ignores the body, but must accept it.
  return MayForwardAuth(exchange) ? std::optional(kAnyBody) : std::nullopt;
}

bool ApiFrontend::MayUse(HttpExchange& exchange, const Endpoint& endpoint) {
  const auto reject = [&](int status, std::string_view why, std::string_view field_lines = {}) {
    AnswerProblem(exchange, status, why, {}, field_lines);
    return false;
  };
  if (exchange.head().method != "POST") {
    return reject(405, "use POST with a JSON body", "Allow: POST\r\n");
  }
  // Browsers send a preflight request before a web page may send JSON to another origin, and the
  // API rejects preflight requests. So the body must be JSON.
  if (!AcceptsBody(exchange)) return false;
  // A page whose name resolves to this machine (DNS rebinding) needs no preflight request, but
  // browsers send Origin with every POST, and programs do not.
  if (PageOf(exchange.head()) != Page::kNone) {
    return reject(403,
                  "the API is for programs: requests of web pages, which have an Origin or a "
                  "Sec-Fetch-Site, are rejected");
  }
  const AccessControl& access = *pipeline_.snapshot()->access;
  if (MayBeRebound(exchange, access, ListenerId::kApi)) return reject(403, kUseAddressAsHost);
  return Authorize(exchange, access, ListenerId::kApi, TokenFields::kOwn, endpoint.needs,
                   failures_);
}

void ApiFrontend::Decide(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& scratch = exchange.memory();
  Question question(scratch);
  if (const auto bad = ReadQuestion(exchange.body(), question, scratch)) {
    return AnswerProblem(exchange, 400, bad->message, bad->pointer);
  }
  DecisionCall& call = pipeline_.Begin();
  if (const auto bad = Prepare(question, endpoint, call, scratch)) {
    call.Drop();
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  StartFor(call, {.exchange = &exchange, .names_rule = question.Has(Question::kRule)});
}

std::optional<Objection> ApiFrontend::Prepare(const Question& question, const Endpoint& endpoint,
                                              DecisionCall& call,
                                              std::pmr::memory_resource& scratch) {
  if (auto bad = CheckMembers(question, endpoint.members, endpoint.required, endpoint.path)) {
    return bad;
  }
  return Resolve(
      question, endpoint.kind,
      call.snapshot().api.inline_quotas ? InlineQuotas::kAllowed : InlineQuotas::kRefused, call,
      scratch);
}

void ApiFrontend::OnDecided(DecisionCall& call) noexcept {
  const Pending& pending = call.Attached<Pending>();
  if (pending.batch != nullptr) {
    if (--pending.batch->open == 0) AnswerBatch(*pending.batch);
  } else if (pending.forward_auth) {
    AnswerAuth(call, *pending.exchange, pending.deny_status);
  } else {
    Answer(call, *pending.exchange);
  }
}

void ApiFrontend::Answer(DecisionCall& call, HttpExchange& exchange) {
  if (call.error) {
    const Error error = *std::move(call.error);
    call.Drop();
    return AnswerProblem(exchange, StatusOf(error.code), error.message);
  }
  // Programs copy header fields to their clients, so the fields never name a hidden rule.
  const tidegate::Answer for_clients = call.AnswerFor({.hidden_rules = false});
  const int status = for_clients.status();
  const Config::Responses& responses = call.snapshot().responses;
  WriteAnswerFields(exchange.Begin(status), for_clients, status, responses,
                    status < 400 ? Micros{0} : pipeline_.RetryJitter(responses));
  body_.Clear();
  const bool whole = for_clients.hides_rules && ShowsHiddenRules(call);
  WriteAnswerJson(body_, whole ? call.answer() : for_clients, status);
  body_ << '\n';
  call.Drop();
  exchange.End(status >= 400 ? "application/problem+json" : "application/json", body_.view());
}

std::optional<Objection> ApiFrontend::PrepareBatch(Batch& batch, const Endpoint& endpoint) {
  std::pmr::memory_resource& scratch = batch.exchange.memory();
  std::pmr::vector<Question> questions(&scratch);
  if (auto bad = ReadBatch(batch.exchange.body(), questions, scratch)) return bad;
  std::pmr::polymorphic_allocator<> allocator(&scratch);
  auto* const calls = allocator.allocate_object<DecisionCall*>(questions.size());
  for (const Question& question : questions) {
    const std::size_t i = batch.calls.size();
    calls[i] = &pipeline_.Begin();
    batch.calls = {calls, i + 1};
    if (auto bad = Prepare(question, endpoint, *calls[i], scratch)) {
      bad->pointer.insert(0, "/requests/" + std::to_string(i));
      return bad;
    }
    calls[i]->Attach<Pending>(Pending{
        .exchange = &batch.exchange, .batch = &batch, .names_rule = question.Has(Question::kRule)});
  }
  return std::nullopt;
}

void ApiFrontend::DecideBatch(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::polymorphic_allocator<> allocator(&exchange.memory());
  Batch& batch = *allocator.new_object<Batch>(exchange);
  const auto drop = [](void* dropped) noexcept {
    for (DecisionCall* const call : static_cast<Batch*>(dropped)->calls) call->Drop();
  };
  // All questions are resolved before the first is charged, so an invalid one charges nothing.
  if (const auto bad = PrepareBatch(batch, endpoint)) {
    drop(&batch);
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  // One more than the number of calls, so that the batch is not answered before all calls are
  // started.
  batch.open = batch.calls.size() + 1;
  for (DecisionCall* const call : batch.calls) call->Start(this);
  if (--batch.open == 0) return AnswerBatch(batch);
  // Register this last: an abort during the loop would drop calls that are not started yet.
  exchange.OnAbort(drop, &batch);
}

void ApiFrontend::AnswerBatch(Batch& batch) {
  HttpExchange& exchange = batch.exchange;
  body_.Clear();
  body_ << R"({"results":[)";
  for (std::size_t i = 0; i < batch.calls.size(); ++i) {
    DecisionCall& call = *batch.calls[i];
    if (i != 0) body_ << ',';
    if (call.error) {
      body_ << R"({"status":)" << StatusOf(call.error->code) << R"(,"detail":")";
      net::WriteJsonText(body_, call.error->message);
      body_ << "\"}";
    } else {
      const tidegate::Answer answer = call.AnswerFor({.hidden_rules = ShowsHiddenRules(call)});
      // Pass 200, with which the members of a problem are omitted: they would repeat the status.
      body_ << R"({"status":)" << answer.status() << R"(,"decision":)";
      WriteAnswerJson(body_, answer, 200);
      body_ << '}';
    }
    call.Drop();
  }
  body_ << "]}\n";
  exchange.Begin(200);
  exchange.End("application/json", body_.view());
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "frontends/api_frontend.hpp"

#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <random>
#include <utility>

#include "frontends/asked.hpp"
#include "frontends/forward_auth.hpp"
#include "frontends/http_admission.hpp"
#include "frontends/resolve.hpp"
#include "frontends/settled.hpp"
#include "frontends/web_page.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

using net::AnswerProblem;
using net::HttpExchange;

constexpr unsigned kWhom = Question::kRule | Question::kIdentity | Question::kRequest |
                           Question::kKey | Question::kLimit | Question::kBurst |
                           Question::kAlgorithm;
constexpr unsigned kMayCost = kWhom | Question::kCost;
constexpr std::string_view kOpenApiPath = "/openapi.json";

}  // namespace

struct ApiFrontend::Endpoint {
  std::string_view path;
  Call::Kind kind;
  unsigned members;   ///< That make sense here.
  unsigned required;  ///< Of these.
  enum class Gives : std::uint8_t { kNothing, kQuota } gives = Gives::kNothing;
};

std::optional<Objection> ApiFrontend::Asked::Prepare(const Question& question,
                                                     const Endpoint& endpoint) {
  if (auto bad = CheckMembers(question, endpoint.members, endpoint.required, endpoint.path)) {
    return bad;
  }
  kind = endpoint.kind;
  if (auto bad =
          Resolve(question, kind, *policy->rules, *door.overrides_.table(),
                  policy->api.inline_quotas ? InlineQuotas::kAllowed : InlineQuotas::kRefused,
                  resolved, exchange.memory())) {
    return bad;
  }
  if (question.Has(Question::kId)) {
    refund.id = question.id;
    if (question.Has(Question::kAge)) refund.age = std::chrono::milliseconds{question.age_ms};
  }
  TakeCharges();
  return std::nullopt;
}

/// Several questions under way, answered together when the last of them is.
struct ApiFrontend::Batch {
  explicit Batch(HttpExchange& of) : exchange(of), all(&of.memory()) {}
  HttpExchange& exchange;
  std::pmr::vector<Asked*> all;
  std::size_t open = 0;
};

std::span<const ApiFrontend::Endpoint> ApiFrontend::Endpoints() noexcept {
  using Gives = Endpoint::Gives;
  using Kind = Call::Kind;
  static constexpr std::array<Endpoint, 8> kEndpoints{{
      {"/v1/decide", Kind::kApply, kMayCost, 0},
      {"/v1/peek", Kind::kPeek, kMayCost, 0},
      {"/v1/acquire", Kind::kApply, kMayCost | Question::kLease, Question::kLease},
      {"/v1/renew", Kind::kRenew, kWhom | Question::kLease, Question::kLease},
      {"/v1/release", Kind::kRelease, kWhom | Question::kLease, Question::kLease, Gives::kQuota},
      {"/v1/debit", Kind::kDebit, kMayCost, Question::kCost},
      {"/v1/refund", Kind::kRefund, kMayCost | Question::kId | Question::kAge, Question::kId,
       Gives::kQuota},
      {"/v1/decide/batch", Kind::kApply, kMayCost, 0},
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

ApiFrontend::ApiFrontend(AsyncStore& store, Tally& tally, const OverrideDesk& overrides,
                         const Admission& admission, Refusals& refusals,
                         const std::shared_ptr<const Policy>& policy)
    : store_(store),
      tally_(tally),
      overrides_(overrides),
      admission_(admission),
      refusals_(refusals),
      random_(std::random_device{}() | 1u) {
  Use(policy);
}

ApiFrontend::~ApiFrontend() = default;

void ApiFrontend::Use(const std::shared_ptr<const Policy>& policy) {
  // A count of references of this reactor's own: no other core touches it.
  policy_ = std::make_shared<const Policy>(*policy);
}

void ApiFrontend::Handle(HttpExchange& exchange) noexcept {
  const net::HttpHead& head = exchange.head();
  if (const Endpoint* const endpoint = FindEndpoint(head.path)) {
    if (!MayAsk(exchange, *endpoint)) return;
    return endpoint->path == "/v1/decide/batch" ? AskBatch(exchange, *endpoint)
                                                : Ask(exchange, *endpoint);
  }
  if (IsForwardAuth(head.path)) return Auth(exchange);
  if (head.path == kOpenApiPath) {
    if (head.method != "GET" && head.method != "HEAD") {
      return AnswerProblem(exchange, 405, "the document can be read with GET", {},
                           "Allow: GET, HEAD\r\n");
    }
    exchange.Begin(200);
    return exchange.End("application/json", OpenApiJson());
  }
  AnswerProblem(
      exchange, 404,
      "there is nothing here: ask POST /v1/decide; GET /openapi.json describes all of it");
}

/// False: it has been answered.
bool ApiFrontend::MayAsk(HttpExchange& exchange, const Endpoint& endpoint) {
  if (exchange.head().method != "POST") {
    AnswerProblem(exchange, 405, "ask with POST and a JSON body", {}, "Allow: POST\r\n");
    return false;
  }
  // A browser sends JSON to a foreign origin only after asking; no web page can charge or refund
  // quotas behind its reader's back.
  if (!IsJson(exchange.head())) {
    AnswerProblem(exchange, 415,
                  "send JSON and say so: `Content-Type: application/json` (curl does with --json)");
    return false;
  }
  // Nor can one whose name leads to this machine by a trick of DNS: it is its own origin then, but
  // a browser names that with every POST. Programs have none.
  if (PageOf(exchange.head()) != Page::kNone) {
    AnswerProblem(exchange, 403,
                  "the API is for programs: requests of web pages, with an Origin, "
                  "are refused");
    return false;
  }
  const bool gives = endpoint.gives == Endpoint::Gives::kQuota;
  return Admit(exchange, admission_, *policy_->tokens, TokenFields::kOwn,
               gives ? Rights::kAll : Rights::kAsk, refusals_);
}

void ApiFrontend::Ask(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = exchange.memory();
  Question question(memory);
  if (const auto bad = ReadQuestion(exchange.body(), question, memory)) {
    return AnswerProblem(exchange, 400, bad->message, bad->pointer);
  }
  auto* const asked = new (memory.allocate(sizeof(Asked), alignof(Asked))) Asked(*this, exchange);
  if (const auto bad = asked->Prepare(question, endpoint)) {
    asked->~Asked();
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  Start(*asked);
}

void ApiFrontend::Start(Asked& asked) {
  asked.finished = [](Call& call) noexcept {
    Asked& mine = static_cast<Asked&>(call);
    mine.door.Count(mine);
    if (mine.batch == nullptr) return mine.door.Finish(mine);
    if (--mine.batch->open == 0) mine.door.FinishBatch(*mine.batch);
  };
  // No rule matched, or an entry of deny or exempt did.
  if (asked.charges.empty()) return asked.finished(asked);
  if (asked.kind != Call::Kind::kApply) return store_.Start(asked);
  tally_.Time(asked.mark, [&] { store_.Start(asked); });
}

void ApiFrontend::Count(Asked& asked) {
  tally_.Answered(asked.mark);
  if (asked.error || asked.kind != Call::Kind::kApply) return;
  CountSettled(tally_, *asked.policy, asked.resolved.charges);
  for (std::size_t i = 0; i < asked.charges.size(); ++i) {
    const Rule* const rule = asked.resolved.charges.rules[i];
    tally_.Count(rule == nullptr ? RuleSlots::kOther : asked.policy->slots[rule->number],
                 asked.charges[i], asked.decisions[i]);
  }
}

void ApiFrontend::Finish(Asked& asked) {
  HttpExchange& exchange = asked.exchange;
  if (asked.error) {
    const Error error = *std::move(asked.error);
    asked.~Asked();
    return AnswerProblem(exchange, StatusOf(error.code), error.message);
  }
  const Answer answer = asked.answer();
  const int status = asked.StatusOf(answer);
  net::OutBuffer& out = exchange.Begin(status);
  const Config::Responses& responses = asked.policy->responses;
  WriteAnswerFields(out, answer, status, responses, status < 400 ? Micros{0} : Jitter());
  body_.Clear();
  WriteAnswerJson(body_, answer, status);
  body_ << '\n';
  asked.~Asked();
  exchange.End(status >= 400 ? "application/problem+json" : "application/json", body_.view());
}

// --- Batches ------------------------------------------------------------------

std::optional<Objection> ApiFrontend::PrepareBatch(Batch& batch, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = batch.exchange.memory();
  std::pmr::vector<Question> questions(&memory);
  if (const auto bad = ReadBatch(batch.exchange.body(), questions, memory)) {
    return Objection{400, bad->message, bad->pointer};
  }
  for (const Question& question : questions) {
    auto* const asked =
        new (memory.allocate(sizeof(Asked), alignof(Asked))) Asked(*this, batch.exchange);
    batch.all.push_back(asked);
    asked->batch = &batch;
    if (auto bad = asked->Prepare(question, endpoint)) {
      bad->pointer.insert(0, "/requests/" + std::to_string(batch.all.size() - 1));
      return bad;
    }
  }
  return std::nullopt;
}

void ApiFrontend::AskBatch(HttpExchange& exchange, const Endpoint& endpoint) {
  std::pmr::memory_resource& memory = exchange.memory();
  auto* const batch = new (memory.allocate(sizeof(Batch), alignof(Batch))) Batch(exchange);
  // All are understood before the first is charged: a mistake in one changes nothing. The questions
  // are gone again by then: they live in the exchange's memory, which its answer takes away.
  if (const auto bad = PrepareBatch(*batch, endpoint)) {
    for (Asked* const asked : batch->all) asked->~Asked();
    batch->~Batch();
    return AnswerProblem(exchange, bad->status, bad->message, bad->pointer);
  }
  // One more than there are, so that none of them can end the batch while it is being started.
  batch->open = batch->all.size() + 1;
  for (Asked* const asked : batch->all) Start(*asked);
  if (--batch->open == 0) FinishBatch(*batch);
}

void ApiFrontend::FinishBatch(Batch& batch) {
  HttpExchange& exchange = batch.exchange;
  body_.Clear();
  body_ << R"({"results":[)";
  for (std::size_t i = 0; i < batch.all.size(); ++i) {
    Asked& asked = *batch.all[i];
    if (i != 0) body_ << ',';
    if (asked.error) {
      body_ << R"({"status":)" << tidegate::StatusOf(asked.error->code) << R"(,"detail":")";
      net::WriteJsonText(body_, asked.error->message);
      body_ << "\"}";
    } else {
      const Answer answer = asked.answer();
      // The problem's members would repeat themselves; the status alone says it.
      body_ << R"({"status":)" << asked.StatusOf(answer) << R"(,"decision":)";
      WriteAnswerJson(body_, answer, 200);
      body_ << '}';
    }
    asked.~Asked();
  }
  body_ << "]}\n";
  batch.~Batch();
  exchange.Begin(200);
  exchange.End("application/json", body_.view());
}

Micros ApiFrontend::Jitter() noexcept {
  const std::int64_t most = policy_->responses.retry_after_jitter.count();
  if (most == 0) return Micros{0};
  // xorshift64*: quick, and good enough to spread clients.
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  const std::uint64_t number = random_ * 0x2545F4914F6CDD1Du;
  return Micros{static_cast<std::int64_t>(number % (static_cast<std::uint64_t>(most) + 1))};
}

}  // namespace tidegate

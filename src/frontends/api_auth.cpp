// SPDX-License-Identifier: Apache-2.0
// /v1/auth: the question is a request of its own, told by the proxy that holds it back. The answer
// is a status: proxies look at nothing else.
#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "frontends/api_frontend.hpp"
#include "frontends/asked.hpp"
#include "frontends/forward_auth.hpp"
#include "frontends/http_admission.hpp"
#include "rules/client_address.hpp"
#include "rules/path.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using net::HttpExchange;

/// What a proxy may take for a denial. Others say that it is configured wrongly; they keep their
/// status, whatever `deny_status` says.
constexpr bool IsRefusal(int status) noexcept { return status != 500; }

void Refuse(HttpExchange& exchange, int status, int deny_status, std::string_view detail) {
  net::OutBuffer body;
  net::WriteProblem(body, status, detail);
  const bool refusal = IsRefusal(status);
  net::OutBuffer& out = exchange.Begin(refusal && deny_status != 0 ? deny_status : status);
  out << "Cache-Control: no-store\r\n";
  if (refusal) out << "X-RateLimit-Status: " << status << "\r\n";
  exchange.End("application/problem+json", body.view());
}

/// A proxy that is not trusted asks for every request of its clients: one line a minute will do.
void WarnOfStranger(const std::string& peer) {
  static std::atomic<std::int64_t> next{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  std::int64_t due = next.load(std::memory_order_relaxed);
  if (second < due || !next.compare_exchange_strong(due, second + 60)) return;
  Log::Warning("/v1/auth was asked by a proxy that client_ip.trusted_proxies does not name",
               {{"peer", peer}});
}

Objection Stranger(const Address& peer) {
  const std::string text = peer.Text();
  WarnOfStranger(text);
  // Quoted: an IPv6 address has colons.
  return {500,
          "what this proxy says of its client is not believed: add `client_ip: {trusted_proxies: "
          "[\"" +
              text + "\"]}` to the configuration",
          {}};
}

/// Nobody tells when the request ends, so no lease can be held for it.
void LeaveOutLeases(Charges& all) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.charges.size(); ++i) {
    if (all.charges[i].quota->algorithm() == Algorithm::kConcurrency) continue;
    all.charges[kept] = all.charges[i];
    all.rules[kept++] = all.rules[i];
  }
  all.charges.resize(kept);
  all.rules.resize(kept);
}

/// `told` in its normal form.
std::optional<Objection> Normalise(const ToldRequest& told, RequestView& view,
                                   std::pmr::memory_resource& memory) {
  const auto path = NormalizePath(told.path, Slashes::kMerge, memory);
  if (!path) {
    return Objection{400,
                     "the client's path has no normal form: it does not begin with a slash, climbs "
                     "above the root or is badly encoded",
                     {}};
  }
  if (MayClimbElsewhere(told.path)) {
    return Objection{400,
                     "the client's path may lead elsewhere than rules see: it has a dot segment "
                     "with parameters, or one beside an encoded slash or backslash, which whoever "
                     "serves it may decode",
                     {}};
  }
  view.method = told.method;
  view.path = *path;
  view.query = told.query;
  if (told.host.empty()) return std::nullopt;
  const auto host = NormalizeHost(told.host, memory);
  if (!host) return Objection{400, "the client's host is none", {}};
  view.host = *host;
  return std::nullopt;
}

/// The charges that the client's request comes to.
std::optional<Objection> ResolveTold(const HttpExchange& exchange, const RuleSet& rules,
                                     const OverrideTable& overrides, const Address& peer,
                                     Resolved& resolved, std::pmr::memory_resource& memory) {
  const net::HttpHead& head = exchange.head();
  ToldRequest told;
  if (auto bad = ReadToldRequest(head, told)) return bad;
  RequestView view;
  if (auto bad = Normalise(told, view, memory)) return bad;
  std::pmr::vector<HeaderField> headers(&memory);
  headers.reserve(head.field_count);
  for (const net::HttpField& field : head.all()) headers.push_back({field.name, field.value});
  view.headers = headers;
  view.client = ClientAddress(rules.client_policy(), peer, headers);
  view.has_client = true;
  // The proxy is trusted, but it passes on all that its client sent, a cost too.
  view.trusted = false;
  const auto access = rules.Match(view, std::nullopt, {}, {&overrides}, resolved.charges, memory);
  if (!access) return Objection{StatusOf(access.error().code), access.error().message, {}};
  resolved.access = *access;
  LeaveOutLeases(resolved.charges);
  return std::nullopt;
}

}  // namespace

void ApiFrontend::Auth(HttpExchange& exchange) {
  if (!Admit(exchange, admission_, *policy_->tokens, TokenFields::kCopied, Rights::kAsk,
             refusals_)) {
    return;
  }
  const RuleSet& rules = *policy_->rules;
  const Address peer(exchange.peer().bytes);
  int deny_status = 0;
  std::optional<Objection> bad;
  if (!rules.client_policy().Trusts(peer)) bad = Stranger(peer);
  // The query of a longer path is the client's.
  if (!bad && exchange.head().path == kAuthPath) {
    bad = ReadDenyStatus(exchange.head().query, deny_status);
  }
  if (bad) return Refuse(exchange, bad->status, 0, bad->message);
  std::pmr::memory_resource& memory = exchange.memory();
  auto* const asked = new (memory.allocate(sizeof(Asked), alignof(Asked))) Asked(*this, exchange);
  bad = ResolveTold(exchange, rules, *overrides_.table(), peer, asked->resolved, memory);
  if (bad) {
    asked->~Asked();
    return Refuse(exchange, bad->status, deny_status, bad->message);
  }
  asked->kind = Call::Kind::kApply;
  asked->deny_status = deny_status;
  asked->TakeCharges();
  asked->finished = [](Call& call) noexcept {
    Asked& mine = static_cast<Asked&>(call);
    mine.door.Count(mine);
    mine.door.FinishAuth(mine);
  };
  if (asked->charges.empty()) return asked->finished(*asked);
  store_.Start(*asked);
}

void ApiFrontend::FinishAuth(Asked& asked) {
  HttpExchange& exchange = asked.exchange;
  const int deny_status = asked.deny_status;
  if (asked.error) {
    const Error error = *std::move(asked.error);
    asked.~Asked();
    return Refuse(exchange, tidegate::StatusOf(error.code), deny_status, error.message);
  }
  const Answer answer = asked.answer();
  const int status = answer.status();
  const Config::Responses& responses = asked.policy->responses;
  if (status == 200) {
    WriteAnswerFields(exchange.Begin(200), answer, status, responses, Micros{0});
    asked.~Asked();
    return exchange.End({}, {});
  }
  net::OutBuffer& out = exchange.Begin(deny_status != 0 ? deny_status : status);
  WriteAnswerFields(out, answer, status, responses, Jitter());
  out << "X-RateLimit-Status: " << status << "\r\n";
  body_.Clear();
  WriteAnswerJson(body_, answer, status);
  body_ << '\n';
  asked.~Asked();
  exchange.End("application/problem+json", body_.view());
}

}  // namespace tidegate

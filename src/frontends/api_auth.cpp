// SPDX-License-Identifier: Apache-2.0
// /v1/auth: a proxy describes its client's request, and forwards the request only if the response
// allows it. The proxy evaluates only the status of the response.
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "base/message_text.hpp"
#include "base/units.hpp"
#include "decision/answer.hpp"
#include "frontends/api_frontend.hpp"
#include "frontends/forward_auth.hpp"
#include "frontends/http_access.hpp"
#include "identity/client_address.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using net::HttpExchange;

/// Returns true if the proxy may treat the status as a denial. A 500 means that the proxy is
/// configured wrongly; `deny_status` does not replace it.
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

/// Returns true if the request has a header field that proxies add.
bool HasForwardingFields(const net::HttpHead& head) noexcept {
  constexpr std::array<std::string_view, 3> kPrefixes = {"x-forwarded-", "x-original-",
                                                         "forwarded"};
  for (const net::HttpField& field : head.all()) {
    const char first = static_cast<char>(field.name.front() | 0x20);
    if (first != 'x' && first != 'f') continue;  // Most names begin with another letter.
    for (const std::string_view prefix : kPrefixes) {
      if (EqualsIgnoreCase(field.name.substr(0, prefix.size()), prefix)) return true;
    }
  }
  return false;
}

/// Returns the request id that the proxy sent; empty if there is none or IsRequestId() rejects it.
std::string_view RequestId(const net::HttpHead& head) noexcept {
  const net::HttpField* const field = net::FindField(head.all(), "x-request-id");
  return field != nullptr && IsRequestId(field->value) ? field->value : std::string_view{};
}

/// Returns the port in `host`, the value of a Host field, or 80 if `host` has no port.
unsigned PortOf(std::string_view host) noexcept {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos) return 80;
  return ParseNumber<unsigned>(host.substr(colon + 1)).value_or(0);
}

/// Logs at most once a minute: an untrusted proxy sends a request for each request of its clients.
void WarnOfUntrustedProxy(const std::string& peer) {
  static LogInterval interval{std::chrono::minutes{1}};
  if (interval.Count(LogInterval::Clock::now()) == 0) return;
  Log::Warning("/v1/auth rejected: client_ip.trusted_proxies does not contain the proxy",
               {{"peer", peer}});
}

Objection UntrustedProxy(const Address& peer) {
  const std::string text = peer.Text();
  WarnOfUntrustedProxy(text);
  // Quoted, because an IPv6 address contains colons.
  return {500, "this proxy is not trusted: add `client_ip: {trusted_proxies: [\"" + text +
                   "\"]}` to the configuration"};
}

/// Fills `view` with the normal form of `request`.
std::optional<Objection> Normalise(const ClientRequest& request, const PathPolicy& paths,
                                   RequestView& view, std::pmr::memory_resource& memory) {
  const auto path = ReadRequestPath(request.path,
                                    {.forwarding = Forwarding::kAsSent,
                                     .ignore_case = paths.ignore_case,
                                     .encoded_slashes = paths.encoded_slashes},
                                    memory);
  if (!path) return Objection{400, InvalidPath(request.path, path.error())};
  view.method = request.method;
  view.SetPath(*path);
  view.query = request.query;
  if (request.host.empty()) return std::nullopt;
  const auto host = NormalizeHost(request.host, memory);
  if (!host)
    return Objection{
        400, "the host of the client's request is invalid: `" + Printable(request.host) + '`'};
  view.host = *host;
  return std::nullopt;
}

/// Fills `call` with the charges of the client's request.
std::optional<Objection> ResolveClientRequest(HttpExchange& exchange, const Address& peer,
                                              DecisionCall& call) {
  const net::HttpHead& head = exchange.head();
  std::pmr::memory_resource& scratch = exchange.memory();
  ClientRequest request;
  if (auto bad = ReadClientRequest(head, request)) return bad;
  RequestView view;
  const RuleSet& rules = *call.snapshot().rules;
  if (auto bad = Normalise(request, rules.paths(), view, scratch)) return bad;
  std::pmr::vector<HeaderField> headers(&scratch);
  headers.reserve(head.field_count);
  for (const net::HttpField& field : head.all()) {
    if (field.name.find('_') != std::string_view::npos && rules.ReadsSpelling(field.name) &&
        !rules.ReadsHeader(field.name)) {
      return Objection{400, "header `" + Printable(field.name) +
                                "` is ambiguous: a rule reads the header with `-` in place of `_`; "
                                "the proxy must remove this one"};
    }
    headers.push_back({field.name, field.value});
  }
  view.headers = headers;
  view.client = ClientAddress(rules.client_policy(), peer, headers);
  view.has_client = true;
  // The proxy is trusted, but it copies every header of its client. A header with a cost may
  // therefore come from the client, and must be ignored.
  view.trusted = false;
  const auto access = rules.Match(view, std::nullopt, {}, {call.pipeline().overrides().get()},
                                  call.matched, call.memory());
  if (!access) return Objection{StatusOf(access.error().code), access.error().message};
  call.access = *access;
  // A proxy does not report when the request ends, so no lease can be held for it.
  call.matched.Filter(
      [](const Charge& charge) { return charge.quota->algorithm() != Algorithm::kConcurrency; });
  return std::nullopt;
}

}  // namespace

/// If the request has forwarding headers, its Host, Origin and Sec-Fetch-Site prove nothing,
/// because proxies copy these fields from their client. A page of another origin cannot add
/// forwarding headers without a preflight request. A page whose name resolves to this machine can
/// add them, but its browser sends the port of this listener in Host, and no client of a proxy
/// does that.
bool ApiFrontend::MayBePage(const HttpExchange& exchange, const AccessControl& access) const {
  const net::HttpHead& head = exchange.head();
  const bool rebound = MayBeRebound(exchange, access, ListenerId::kApi);
  if (!rebound && PageOf(head) != Page::kForeign) return false;
  return !HasForwardingFields(head) || (rebound && PortOf(head.host) == port_);
}

bool ApiFrontend::MayForwardAuth(HttpExchange& exchange) {
  const SnapshotRef snapshot = pipeline_.snapshot();
  if (MayBePage(exchange, *snapshot->access)) {
    Refuse(exchange, 403, 0,
           "only proxies may use /v1/auth: send X-Forwarded-For, and as Host the client's host or "
           "the address of this machine");
    return false;
  }
  if (!Authorize(exchange, *snapshot->access, ListenerId::kApi, TokenFields::kCopied,
                 Rights::kDecide, failures_)) {
    return false;
  }
  const Address peer(exchange.peer().bytes);
  if (snapshot->rules->client_policy().Trusts(peer)) return true;
  const Objection untrusted = UntrustedProxy(peer);
  Refuse(exchange, untrusted.status, 0, untrusted.message);
  return false;
}

void ApiFrontend::ForwardAuth(HttpExchange& exchange) {
  if (!MayForwardAuth(exchange)) return;
  const Address peer(exchange.peer().bytes);
  int deny_status = 0;
  // On a longer path, the query belongs to the client's request.
  if (exchange.head().path == kAuthPath) {
    if (const auto bad = ReadDenyStatus(exchange.head().query, deny_status)) {
      return Refuse(exchange, bad->status, 0, bad->message);
    }
  }
  DecisionCall& call = pipeline_.Begin();
  if (const auto refused = ResolveClientRequest(exchange, peer, call)) {
    call.Drop();
    return Refuse(exchange, refused->status, deny_status, refused->message);
  }
  StartFor(call, {.exchange = &exchange, .forward_auth = true, .deny_status = deny_status});
}

void ApiFrontend::AnswerAuth(DecisionCall& call, HttpExchange& exchange, int deny_status) {
  if (call.error) {
    const Error error = *std::move(call.error);
    call.Drop();
    return Refuse(exchange, StatusOf(error.code), deny_status, error.message);
  }
  const Config::Responses& responses = call.snapshot().responses;
  using Show = Config::Responses::ShowDecidedBy;
  const bool allowed = call.answer().status() == 200;
  // The proxy is trusted, but it forwards a denial to its client, which must not see hidden rules.
  const tidegate::Answer answer =
      call.AnswerFor({.hidden_rules = false,
                      .source = responses.decided_by == Show::kAlways ||
                                (responses.decided_by == Show::kTrusted && allowed)});
  if (allowed) {
    WriteAnswerFields(exchange.Begin(200), answer, 200, responses, Micros{0});
    call.Drop();
    return exchange.End({}, {});
  }
  const Denial denial(answer, nullptr, responses, pipeline_.RetryJitter(responses));
  net::OutBuffer& out = exchange.Begin(deny_status != 0 ? deny_status : denial.status());
  denial.WriteFields(out, {});
  out << "X-RateLimit-Status: " << denial.status() << "\r\n";
  ClientRequest request;
  (void)ReadClientRequest(exchange.head(), request);  // Cannot fail: it was read before.
  body_.Clear();
  denial.WriteBody(
      body_, {.id = RequestId(exchange.head()), .method = request.method, .path = request.path});
  // A copy, because Drop() may free the snapshot that owns the text.
  const std::string content_type(denial.content_type());
  call.Drop();
  exchange.End(content_type, body_.view());
}

}  // namespace tidegate

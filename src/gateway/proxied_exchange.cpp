// SPDX-License-Identifier: Apache-2.0
// An exchange from the request's head to the decision, its attempts, and its end.
#include "gateway/proxied_exchange.hpp"

#include <cstring>
#include <utility>

#include "gateway/gateway.hpp"
#include "gateway/proxy_head.hpp"

namespace tidegate {
namespace {

using net::Deadlines;
using Blame = UpstreamAttempt::Blame;

constexpr auto kBadRequest = ExchangeOutcome::kBadRequest;

std::string_view WriteAddress(const Address& address, std::pmr::memory_resource& memory) {
  auto* const text = static_cast<char*>(memory.allocate(Address::kMaxText, 1));
  return {text, address.Write(text)};
}

std::string_view Copied(std::string_view text, std::pmr::memory_resource& memory) {
  if (text.empty()) return {};
  auto* const copy = static_cast<char*>(memory.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

/// The response to a client whose request failed at the upstream.
struct FailureResponse {
  int status;
  ExchangeOutcome outcome;
  std::string_view detail;
};

/// The responses, indexed by AttemptFailure, without names or addresses from behind the gateway.
constexpr std::array<FailureResponse, kAttemptFailures> kFailureResponses = {{
    {502, ExchangeOutcome::kConnectFailed, "cannot connect to the upstream"},
    {504, ExchangeOutcome::kConnectFailed, "timeout while connecting to the upstream"},
    {502, ExchangeOutcome::kUpstreamError, "the upstream closed the connection"},
    {504, ExchangeOutcome::kTimeout, "the upstream did not respond in time"},
    {502, ExchangeOutcome::kUpstreamError, "malformed response from the upstream"},
    {502, ExchangeOutcome::kUpstreamError, "malformed response from the upstream"},
}};

}  // namespace

ProxiedExchange::ProxiedExchange(Gateway& gateway)
    : gateway_(gateway), quotas_(gateway.pipeline(), gateway.leases()), attempt_(gateway, *this) {}

void ProxiedExchange::Begin(ClientStream& client) {
  client_ = &client;
  // Only the access log needs the exact time.
  begun_ = gateway_.options().log != nullptr ? Deadlines::Clock::now() : gateway_.reactor().now();
  decided_ = begun_;
  phase_ = Phase::kDeciding;
  request_ = Request::kWhole;
  route_ = nullptr;
  status_ = 0;
  tried_.Clear();
  body_bytes_ = bytes_in_ = bytes_out_ = 0;
  text_ = {.method = head_.method, .host = head_.host, .path = head_.path};
  text_.peer = text_.client = WriteAddress(Address(client.peer().bytes), memory_);
  auto* const id = static_cast<char*>(memory_.allocate(Gateway::kIdSize, 1));
  gateway_.WriteId(id);
  text_.request_id = {id, Gateway::kIdSize};
  quotas_.Begin(text_.request_id);
  if (Prepare()) quotas_.Decide(*this);
}

/// Fills `view` with the normal form of host and path. Returns false if the request has been
/// answered with an error.
bool ProxiedExchange::Normalise(RequestView& view) {
  if (head_.method == "CONNECT" || head_.method == "TRACE") {
    return Reject(405, "the gateway does not forward " + std::string(head_.method) + " requests",
                  "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
  }
  if (!IsUpperCaseMethod(head_.method)) return Reject(400, LowerCaseMethod(head_.method));
  if (head_.path == "*") return Reject(400, "OPTIONS * is not forwarded: send OPTIONS with a path");
  const Snapshot& snapshot = quotas_.snapshot();
  const bool merge = snapshot.routes->gateway().merge_slashes;
  // Encoded slashes are accepted here, because the route decides about them.
  const auto path = ReadRequestPath(head_.path,
                                    {.forwarded_slashes = merge ? Slashes::kMerge : Slashes::kKeep,
                                     .ignore_case = snapshot.rules->paths().ignore_case,
                                     .encoded_slashes = EncodedSlashes::kMatch},
                                    memory_);
  if (!path) return Reject(400, InvalidPath(head_.path, path.error()));
  text_.path = path->forwarded;
  view.SetPath(*path);
  if (!head_.host.empty()) {
    const auto host = NormalizeHost(head_.host, memory_);
    if (!host)
      return Reject(400, "invalid Host header `" + Printable(head_.host) + "`: send a host name");
    view.host = *host;
  }
  view.method = head_.method;
  view.query = head_.query;
  return true;
}

RequestFields::Policy ProxiedExchange::FieldPolicy() const noexcept {
  const Snapshot& snapshot = quotas_.snapshot();
  return {.trusted = trusted_,
          .underscores = snapshot.routes->gateway().underscores,
          .rules = *snapshot.rules};
}

/// Finds the route and the charges. Returns false if the request has been answered with an error.
bool ProxiedExchange::Prepare() {
  RequestView view;
  if (!Normalise(view)) return false;
  const RuleSet& rules = *quotas_.snapshot().rules;
  const Address peer(client_->peer().bytes);
  view.trusted = trusted_ = rules.client_policy().Trusts(peer);
  if (!fields_.Classify(head_, FieldPolicy())) {
    return Reject(400, "the Connection header names too many header fields: send fewer");
  }
  // Raw memory instead of an array of HeaderField, because initialising all 128 fields would take
  // longer than the rest of this function.
  alignas(HeaderField) std::array<std::byte, net::HttpHead::kMaxFields * sizeof(HeaderField)> room;
  auto* const headers = reinterpret_cast<HeaderField*>(room.data());
  std::size_t visible = 0;
  for (std::size_t i = 0; i < head_.field_count; ++i) {
    if (!fields_.VisibleToRules(i, head_)) continue;
    std::construct_at(headers + visible++, head_.fields[i].name, head_.fields[i].value);
  }
  view.headers = {headers, visible};
  view.client = ClientAddress(rules.client_policy(), peer, view.headers);
  view.has_client = true;
  view.has_body = head_.body == net::BodyFraming::kChunked || head_.content_length != 0;
  if (view.client != peer) text_.client = WriteAddress(view.client, memory_);
  if (trusted_) {
    if (const auto given = GivenRequestId(head_, fields_); !given.empty()) {
      text_.request_id = Copied(given, memory_);
    }
  }
  if (!FindRoute(view)) return false;
  if (const auto matched = quotas_.Match(view); !matched) {
    return Reject(StatusOf(matched.error().code), matched.error().message);
  }
  return true;
}

/// Finds the route. Returns false if the request has been answered with an error. Without a
/// matching route the rules still decide.
bool ProxiedExchange::FindRoute(RequestView& view) {
  const Routing& routes = *quotas_.snapshot().routes;
  route_ = routes.Find(view);
  if (!routes.AllowsPathOf(view, route_)) {
    return Reject(400, InvalidPath(head_.path, PathError::kEncodedSeparator));
  }
  if (route_ == nullptr) return true;
  view.route = route_->spec.id;
  attempt_.Use(gateway_.pool(route_->upstream), routes.upstream_slot(route_->upstream),
               {.header_bytes = routes.gateway().response_header_bytes,
                .header_count = routes.gateway().response_header_count});
  const auto path = route_->Rewrite(text_.path, view, memory_);
  if (!path) {
    return Reject(400, "ambiguous path: the route's rewrite cannot find its prefix in the path");
  }
  text_.upstream_path = *path;
  return true;
}

void ProxiedExchange::OnDecided(DecisionCall&) noexcept {
  decided_ = Deadlines::Clock::now();
  phase_ = Phase::kConnecting;
  const int status = quotas_.OnDecided();
  if (const auto& error = quotas_.error()) {
    return AnswerProblem(StatusOf(error->code), error->message, ExchangeOutcome::kClosed);
  }
  if (status != 200) return AnswerDenied();
  if (client_ == nullptr) {
    return End(ExchangeOutcome::kClientGone, ClientStream::Ending::kCut);
  }
  if (route_ == nullptr) {
    return AnswerProblem(404, "no route matches the request's host, path and method",
                         ExchangeOutcome::kNoRoute);
  }
  if (route_->body_bytes != 0 && head_.body == net::BodyFraming::kLength &&
      head_.content_length > route_->body_bytes) {
    return AnswerProblem(413, "the body is longer than the route's body_bytes", kBadRequest);
  }
  attempt_.pool().budget().OnRequest();
  text_.protocol = UpgradeProtocol(head_);
  Attempt(decided_);
}

// --- Attempts -----------------------------------------------------------------

void ProxiedExchange::Attempt(Deadlines::Clock::time_point now) {
  phase_ = Phase::kConnecting;
  using Begun = UpstreamAttempt::Begun;
  switch (const Begun begun = attempt_.Begin(tried_, now)) {
    case Begun::kUp: return SendRequest();
    case Begun::kConnecting:
      return Arm(gateway_.reactor().deadlines().KindFor(attempt_.spec().connect_timeout));
    case Begun::kFailed: return FailAttempt();
    case Begun::kDown:
    case Begun::kFull:
      return AnswerProblem(503,
                           begun == Begun::kFull ? "all targets of the upstream are busy"
                                                 : "no target of the upstream is up",
                           ExchangeOutcome::kUnavailable, "Retry-After: 1\r\n");
  }
}

ProxiedExchange::Step ProxiedExchange::Fail(AttemptFailure failure, std::string_view problem,
                                            Blame blame) {
  attempt_.SetFailure(failure, problem, blame);
  FailAttempt();
  return Step::kOver;
}

/// Ends an attempt that has failed. Retries the request, or ends the exchange.
void ProxiedExchange::FailAttempt() {
  const bool nothing_sent = attempt_.Abandon();
  Deadlines::Disarm(*this);
  pumping_ = false;
  const bool responding = phase_ >= Phase::kResponding;
  // A response of which no byte was sent can still be replaced by an error. It cannot be replaced
  // by a retry, because the response has been counted already.
  const bool retracted = responding && client_->Retract();
  if (retracted) quotas_.ForgetCosts();
  if (responding && !retracted) return End(ExchangeOutcome::kCut, ClientStream::Ending::kCut);
  const AttemptFailure failure = attempt_.failure();
  const Replay replay{nothing_sent, IsIdempotent(text_.method),
                      request_ == Request::kWhole && !retracted};
  if (MayRetry(attempt_.spec().retries, failure, attempt_.head().status, tried_.count(), replay) &&
      (failure == AttemptFailure::kStatus || attempt_.pool().budget().Take())) {
    attempt_.CountRetry();
    return Attempt(Deadlines::Clock::now());
  }
  const FailureResponse& response = kFailureResponses[static_cast<std::size_t>(failure)];
  AnswerProblem(response.status, response.detail, response.outcome);
}

void ProxiedExchange::SendRequest() {
  const RouteSpec& spec = route_->spec;
  const std::string& target = attempt_.target()->authority;
  const std::string_view host = spec.host == RouteSpec::Host::kTarget  ? target
                                : spec.host == RouteSpec::Host::kFixed ? spec.host_name
                                : head_.host.empty()                   ? target
                                                                       : head_.host;
  WriteRequestHead(attempt_.BeginRequest(decided_), head_, fields_,
                   {.path = text_.upstream_path,
                    .host = host,
                    .peer = text_.peer,
                    .scheme = client_->peer().secure ? "https" : "http",
                    .request_id = text_.request_id,
                    .upgrade = !text_.protocol.empty()},
                   spec.request_headers);
  phase_ = Phase::kSending;
  if (const auto whole = client_->WholeBody()) {
    attempt_.SendBody(*whole);
    attempt_.EndRequest();
  }
  Pump();
}

/// Copies the texts that are needed until the end, because the body overwrites the head's buffer.
void ProxiedExchange::CopyText() noexcept {
  if (std::exchange(request_, Request::kStreaming) == Request::kStreaming) return;
  for (std::string_view* const text : {&text_.method, &text_.host, &text_.path, &text_.protocol}) {
    *text = Copied(*text, memory_);
  }
}

void ProxiedExchange::OnClientGone() {
  CopyText();
  CountBytes(*std::exchange(client_, nullptr));
  // Wait for the decision, so that its charges are logged and its leases are released.
  if (phase_ == Phase::kDeciding) return;
  if (!OwesCost()) return End(ExchangeOutcome::kClientGone, ClientStream::Ending::kCut);
  BeginDraining();
  Drain();
}

void ProxiedExchange::End(ExchangeOutcome outcome, ClientStream::Ending ending) {
  Deadlines::Disarm(*this);
  attempt_.Close();
  if (client_ != nullptr) CountBytes(*client_);
  Log(outcome);
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = route_ == nullptr ? RuleSlots::kOther : route_->slot;
  counters.outcomes.Add(slot, static_cast<std::size_t>(outcome));
  if (status_ >= 100) counters.statuses.Add(slot, GatewayCounters::ClassOf(status_));
  pumping_ = false;
  ClientStream* const client = std::exchange(client_, nullptr);
  phase_ = Phase::kFree;
  quotas_.Settle();
  attempt_.Forget();
  memory_.release();
  // From here on the exchange may belong to another request.
  gateway_.GiveExchange(this);
  if (client != nullptr) client->Finish(ending);
}

}  // namespace tidegate

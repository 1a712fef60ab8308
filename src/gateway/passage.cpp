// SPDX-License-Identifier: Apache-2.0
// A request from its head to the decision, and its end. passage_attempt, passage_request and
// passage_response contain the exchange with the upstream, passage_limits the costs in responses.
#include "gateway/passage.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "decision/denial.hpp"
#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/proxy_head.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {
namespace {

using net::OutBuffer;

constexpr std::size_t kIdSize = 32;

std::string_view WriteAddress(const Address& address, std::pmr::memory_resource& memory) {
  auto* const text = static_cast<char*>(memory.allocate(Address::kMaxText, 1));
  return {text, address.Write(text)};
}

bool IsGrpc(const net::HttpHead& head) noexcept {
  for (const net::HttpField& field : head.all()) {
    if (field.name.size() != 12 || !SameName(field.name, "content-type")) continue;
    const std::string_view type = field.value.substr(0, field.value.find_first_of(";+ "));
    return SameName(type, "application/grpc");
  }
  return false;
}

std::int64_t MicrosBetween(net::Deadlines::Clock::time_point from,
                           net::Deadlines::Clock::time_point to) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

}  // namespace

std::string_view Name(PassageOutcome outcome) noexcept {
  static constexpr std::array<std::string_view, kGatewayOutcomes> kNames = {
      "passed",      "limited",  "denied",      "banned",         "closed",
      "bad_request", "no_route", "unavailable", "connect_failed", "upstream_error",
      "timeout",     "cut",      "client_gone"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Passage::Passage(Gateway& gateway) : gateway_(gateway) {}

Passage::~Passage() {
  if (decision_ != nullptr) decision_->Drop();
}

// --- The request --------------------------------------------------------------

void Passage::Begin(ClientStream& client) {
  client_ = &client;
  decision_ = &gateway_.pipeline().Begin();
  begun_ = decided_ = net::Deadlines::Clock::now();
  sent_at_ = {};
  phase_ = Phase::kDeciding;
  route_ = nullptr;
  method_ = head_.method;
  host_ = head_.host;
  path_ = head_.path;
  status_ = 0;
  attempts_ = 0;
  costs_ = {};
  body_bytes_ = bytes_in_ = bytes_out_ = 0;
  head_kept_ = consumed_ = answer_begun_ = upgrade_ = pumping_ = false;
  problem_.clear();
  peer_text_ = client_text_ = WriteAddress(Address(client.peer().bytes), memory_);
  auto* const id = static_cast<char*>(memory_.allocate(kIdSize, 1));
  gateway_.WriteId(id);
  own_id_ = request_id_ = {id, kIdSize};
  grpc_ = IsGrpc(head_);
  if (Prepare()) decision_->Start(this);
}

/// Fills `view` with the normal form of host and path that routes and rules see. Returns false if
/// the request has been answered with an error.
bool Passage::Normalise(RequestView& view) {
  constexpr auto kBad = PassageOutcome::kBadRequest;
  if (head_.method == "CONNECT" || head_.method == "TRACE") {
    AnswerProblem(405, "methods CONNECT and TRACE are not allowed", kBad,
                  "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
    return false;
  }
  if (!IsUpperCaseMethod(head_.method)) {
    AnswerProblem(400, LowerCaseMethod(head_.method), kBad);
    return false;
  }
  if (head_.path == "*") {
    AnswerProblem(400, "OPTIONS * is not forwarded: ask for the options of a path", kBad);
    return false;
  }
  const Snapshot& snapshot = decision_->snapshot();
  const bool merge = snapshot.routes->gateway().merge_slashes;
  // The route decides about encoded slashes.
  const auto path = ReadRequestPath(head_.path,
                                    {.forwarded_slashes = merge ? Slashes::kMerge : Slashes::kKeep,
                                     .ignore_case = snapshot.rules->paths().ignore_case,
                                     .encoded_slashes = EncodedSlashes::kMatch},
                                    memory_);
  if (!path) {
    AnswerProblem(400, InvalidPath(head_.path, path.error()), kBad);
    return false;
  }
  path_ = path->forwarded;
  view.SetPath(*path);
  if (!head_.host.empty()) {
    const auto host = NormalizeHost(head_.host, memory_);
    if (!host) {
      AnswerProblem(400, "invalid Host header", kBad);
      return false;
    }
    view.host = *host;
  }
  view.method = head_.method;
  view.query = head_.query;
  return true;
}

RequestFields::Policy Passage::FieldPolicy() const noexcept {
  const Snapshot& snapshot = decision_->snapshot();
  return {.trusted = trusted_,
          .underscores = snapshot.routes->gateway().underscores,
          .rules = *snapshot.rules};
}

/// Finds the route and the charges. Returns false if the request has been answered with an error.
bool Passage::Prepare() {
  RequestView view;
  if (!Normalise(view)) return false;
  const RuleSet& rules = *decision_->snapshot().rules;
  const Address peer(client_->peer().bytes);
  view.trusted = trusted_ = rules.client_policy().Trusts(peer);
  if (!fields_.Classify(head_, FieldPolicy())) {
    AnswerProblem(400, "invalid Connection header: too many names", PassageOutcome::kBadRequest);
    return false;
  }
  // Not an array of HeaderField: initialising all 128 would take longer than the rest of this.
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
  view.has_body = head_.body == net::HttpBody::kChunked || head_.content_length != 0;
  if (view.client != peer) client_text_ = WriteAddress(view.client, memory_);
  if (trusted_) {
    if (const auto given = GivenRequestId(head_, fields_); !given.empty()) {
      request_id_ = Keep(given);
    }
  }
  route_ = decision_->snapshot().routes->Find(view);
  if (!decision_->snapshot().routes->AllowsPathOf(view, route_)) {
    AnswerProblem(400, InvalidPath(head_.path, PathError::kEncodedSeparator),
                  PassageOutcome::kBadRequest);
    return false;
  }
  if (route_ != nullptr) {
    view.route = route_->spec.id;
    pool_ = gateway_.pool(route_->upstream);
  }
  if (route_ != nullptr) {
    const auto path = route_->Rewrite(path_, view, memory_);
    if (!path) {
      AnswerProblem(400, "ambiguous path: the route's rewrite does not find its prefix in it",
                    PassageOutcome::kBadRequest);
      return false;
    }
    upstream_path_ = *path;
  }
  const OverrideView overrides{gateway_.pipeline().overrides().get()};
  const auto access = rules.Match(view, std::nullopt, decision_->Keep(own_id_), overrides,
                                  decision_->matched, decision_->memory());
  if (!access) {
    AnswerProblem(StatusOf(access.error().code), access.error().message,
                  PassageOutcome::kBadRequest);
    return false;
  }
  decision_->access = *access;
  return true;
}

Answer Passage::DecidedAnswer() const noexcept {
  if (phase_ == Phase::kDeciding || decision_->error) return {};
  return decision_->answer();
}

Answer Passage::ClientAnswer() {
  if (phase_ == Phase::kDeciding || decision_->error) return {};
  using Show = Config::Responses::ShowDecidedBy;
  const Show show = decision_->snapshot().responses.decided_by;
  return decision_->AnswerFor(
      {.hidden_rules = false,
       .source = show == Show::kAlways || (show == Show::kTrusted && trusted_)});
}

void Passage::OnDecided(DecisionCall&) noexcept {
  decided_ = net::Deadlines::Clock::now();
  phase_ = Phase::kConnecting;
  if (const auto& error = decision_->error) {
    return AnswerProblem(StatusOf(error->code), error->message, PassageOutcome::kClosed);
  }
  if (DecidedAnswer().status() != 200) return AnswerDenied();
  // Also if a failure policy decided: the store may have granted the leases without a reply.
  leases_ = gateway_.leases().Hold(*decision_);
  if (client_ == nullptr) return End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
  if (route_ == nullptr) {
    return AnswerProblem(404, "no route matches this request", PassageOutcome::kNoRoute);
  }
  if (route_->body_bytes != 0 && head_.body == net::HttpBody::kLength &&
      head_.content_length > route_->body_bytes) {
    return AnswerProblem(413, "the body is longer than the route allows",
                         PassageOutcome::kBadRequest);
  }
  pool_->budget().OnRequest();
  upgrade_ = MayUpgrade(head_);
  Attempt();
}

// --- Responses of the gateway itself --------------------------------------------

void Passage::WriteRateLimit(OutBuffer& out, int status, const Config::Responses& responses,
                             OtherRetryAfter other) {
  Answer answer = ClientAnswer();
  if (answer.governing == nullptr) return;
  answer.shows_more_after = other == OtherRetryAfter::kNo;
  WriteAnswerFields(out, answer, status, responses,
                    status < 400 ? Micros{0} : gateway_.pipeline().RetryJitter(responses));
}

void Passage::AnswerDenied() {
  const Answer answer = ClientAnswer();
  const int status = answer.status();
  const auto outcome = status == 429     ? PassageOutcome::kLimited
                       : status != 403   ? PassageOutcome::kClosed
                       : answer.banned() ? PassageOutcome::kBanned
                                         : PassageOutcome::kDenied;
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  if (grpc_ && status != 403) return AnswerGrpc(answer, status, outcome);
  const Config::Responses& responses = decision_->snapshot().responses;
  const Denial denial(answer, route_ == nullptr ? nullptr : &route_->spec.denial, responses,
                      gateway_.pipeline().RetryJitter(responses));
  OutBuffer body;
  denial.WriteBody(body, {.id = request_id_, .method = method_, .path = path_});
  OutBuffer& out = BeginOwnHead(denial.status());
  denial.WriteFields(out, RouteHeaders());
  out << "Content-Type: " << denial.content_type() << "\r\n";
  SendOwn(body.view(), outcome);
}

/// gRPC clients evaluate the gRPC status: RESOURCE_EXHAUSTED, or UNAVAILABLE if a rule is closed.
void Passage::AnswerGrpc(const Answer& answer, int status, PassageOutcome outcome) {
  OutBuffer& out = BeginOwnHead(200);
  out << "Content-Type: application/grpc\r\ngrpc-status: " << (status == 429 ? 8 : 14)
      << "\r\ngrpc-message: "
      << (status == 429 ? "quota exceeded" : "temporarily reduced capacity");
  if (answer.shown != nullptr && answer.shown == answer.governing) {
    out << ": rule " << answer.shown->rule;
  }
  out << "\r\n";
  WriteRateLimit(out, status, decision_->snapshot().responses);
  WriteRouteHeaders(out);
  SendOwn({}, outcome);
}

void Passage::AnswerProblem(int status, std::string_view detail, PassageOutcome outcome,
                            std::string_view lines) {
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  OutBuffer body;
  net::WriteProblem(body, status, detail);
  OutBuffer& out = BeginOwnHead(status);
  out << "Cache-Control: no-store\r\n" << lines;
  if (phase_ != Phase::kDeciding) {
    const bool other = lines.find("Retry-After") != std::string_view::npos;
    WriteRateLimit(out, 200, decision_->snapshot().responses, OtherRetryAfter{other});
  }
  WriteRouteHeaders(out);
  out << "Content-Type: application/problem+json\r\n";
  SendOwn(body.view(), outcome);
}

std::span<const HeaderEdits::Set> Passage::RouteHeaders() const noexcept {
  if (route_ == nullptr) return {};
  return route_->spec.response_headers.set;
}

/// Pages of other origins can read a response only if it has the CORS fields that the route sets.
void Passage::WriteRouteHeaders(OutBuffer& out) const {
  for (const HeaderEdits::Set& field : RouteHeaders()) {
    if (!IsDenialField(field.name)) out << field.name << ": " << field.value << "\r\n";
  }
}

OutBuffer& Passage::BeginOwnHead(int status) {
  status_ = status;
  OutBuffer& out = client_->BeginHead(status, net::ReasonPhrase(status));
  out << "X-Content-Type-Options: nosniff\r\nDate: " << gateway_.reactor().date().Now()
      << "\r\nX-Request-Id: " << request_id_ << "\r\n";
  return out;
}

void Passage::SendOwn(std::string_view body, PassageOutcome outcome) {
  client_->EndHead(AnswerBody::kLength, body.size());
  client_->SendBody(body);
  client_->SendEnd({}, {});
  End(outcome, client_->Flush() ? ClientStream::Ending::kComplete : ClientStream::Ending::kCut);
}

// --- The end --------------------------------------------------------------------

std::string_view Passage::Keep(std::string_view text) {
  if (text.empty()) return {};
  auto* const copy = static_cast<char*>(memory_.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

/// Copies the parts of the head that the log needs, because the body overwrites the head's buffer.
void Passage::KeepHead() {
  if (std::exchange(head_kept_, true)) return;
  method_ = Keep(method_);
  host_ = Keep(host_);
  path_ = Keep(path_);
}

void Passage::OnClientGone() {
  KeepHead();
  bytes_in_ = client_->received();
  bytes_out_ = client_->sent();
  client_ = nullptr;
  // Wait for the decision, so that its charges are logged and its leases are released.
  if (phase_ == Phase::kDeciding) return;
  if (ReadsOn()) {
    BeginOrphan();
    return PumpOrphan();
  }
  ReleaseUpstream(false);
  End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
}

void Passage::End(PassageOutcome outcome, ClientStream::Ending ending) {
  net::Deadlines::Disarm(*this);
  ReleaseUpstream(false);
  if (client_ != nullptr) {
    bytes_in_ = client_->received();
    bytes_out_ = client_->sent();
  }
  Log(outcome);
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = route_ == nullptr ? RuleSlots::kOther : route_->slot;
  counters.outcomes.Add(slot, static_cast<std::size_t>(outcome));
  if (status_ >= 100) counters.statuses.Add(slot, GatewayCounters::ClassOf(status_));
  pumping_ = false;
  SettleCosts();
  if (leases_ != nullptr) gateway_.leases().Release(*std::exchange(leases_, nullptr));
  ClientStream* const client = std::exchange(client_, nullptr);
  phase_ = Phase::kFree;
  std::exchange(decision_, nullptr)->Drop();
  pool_.reset();
  member_.reset();
  memory_.release();
  // From here on the passage may belong to another request.
  gateway_.GivePassage(this);
  if (client != nullptr) client->Finish(ending);
}

void Passage::Log(PassageOutcome outcome) {
  OutBuffer* const line = gateway_.BeginLine();
  if (line == nullptr) return;
  OutBuffer& out = *line;
  const auto now = net::Deadlines::Clock::now();
  out << R"({"time":")";
  WriteLogTime(out);
  out << R"(","request_id":")" << request_id_ << R"(","client":")" << client_text_
      << R"(","method":")" << method_ << R"(","host":")";
  net::WriteJsonText(out, host_);
  out << R"(","path":")";
  net::WriteJsonText(out, path_);
  out << R"(","status":)" << status_ << R"(,"outcome":")" << Name(outcome) << '"';
  if (route_ != nullptr) out << R"(,"route":")" << route_->spec.id << '"';
  const Answer answer = DecidedAnswer();
  if (answer.governing != nullptr) {
    const Decision& decision = *answer.governing;
    out << R"(,"rule":")" << decision.rule << R"(","allowed":)"
        << (answer.allowed ? "true" : "false");
    if (decision.decided_by != DecidedBy::kOperator) {
      out << R"(,"remaining":)" << decision.remaining;
    }
    out << R"(,"decided_by":")" << Name(decision.decided_by) << R"(","reason":")"
        << Name(decision.reason) << '"';
  }
  out << R"(,"decision_us":)" << MicrosBetween(begun_, decided_);
  if (member_ != nullptr) out << R"(,"upstream":")" << member_->text << '"';
  if (sent_at_ != net::Deadlines::Clock::time_point{}) {
    out << R"(,"upstream_us":)" << MicrosBetween(sent_at_, now);
  }
  if (attempts_ > 1) out << R"(,"attempts":)" << attempts_;
  if (!problem_.empty()) {
    out << R"(,"problem":")";
    net::WriteJsonText(out, problem_);
    out << '"';
  }
  out << R"(,"total_us":)" << MicrosBetween(begun_, now) << R"(,"bytes_in":)" << bytes_in_
      << R"(,"bytes_out":)" << bytes_out_ << "}\n";
  gateway_.FinishLine();
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
// From the head of a request to the decision, and its end. What
// flows to and from the upstream is in passage_attempt, passage_request and passage_response, what
// is owed to the store afterwards in passage_limits.
#include "gateway/passage.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontends/resolve.hpp"
#include "frontends/settled.hpp"
#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/proxy_head.hpp"
#include "net/http_exchange.hpp"
#include "rules/path.hpp"

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

Passage::~Passage() = default;

// --- The request --------------------------------------------------------------

void Passage::Begin(ClientStream& client) {
  client_ = &client;
  state_ = gateway_.state();
  begun_ = decided_ = net::Deadlines::Clock::now();
  sent_at_ = {};
  phase_ = Phase::kDeciding;
  route_ = nullptr;
  method_ = head_.method;
  host_ = head_.host;
  path_ = head_.path;
  status_ = 0;
  attempts_ = 0;
  access_ = Access::kRules;
  body_bytes_ = bytes_in_ = bytes_out_ = 0;
  head_kept_ = consumed_ = answer_begun_ = upgrade_ = pumping_ = false;
  problem_.clear();
  peer_text_ = client_text_ = WriteAddress(Address(client.peer().bytes), memory_);
  auto* const id = static_cast<char*>(memory_.allocate(kIdSize, 1));
  gateway_.WriteId(id);
  own_id_ = request_id_ = {id, kIdSize};
  grpc_ = IsGrpc(head_);
  if (Prepare()) Decide();
}

/// The one form of host and path that routes and rules see. False: it has been answered.
bool Passage::Normalise(RequestView& view) {
  constexpr auto kBad = PassageOutcome::kBadRequest;
  if (head_.method == "CONNECT" || head_.method == "TRACE") {
    AnswerProblem(405, "this method is not passed on", kBad,
                  "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
    return false;
  }
  const Slashes slashes =
      state_->routing->gateway().merge_slashes ? Slashes::kMerge : Slashes::kKeep;
  const auto path = NormalizePath(head_.path, slashes, memory_);
  if (!path) {
    AnswerProblem(400, "the path has no normal form: it climbs above the root or is badly encoded",
                  kBad);
    return false;
  }
  path_ = *path;
  if (!head_.host.empty()) {
    const auto host = NormalizeHost(head_.host, memory_);
    if (!host) {
      AnswerProblem(400, "the host is none", kBad);
      return false;
    }
    view.host = *host;
  }
  view.method = head_.method;
  view.path = path_;
  view.query = head_.query;
  return true;
}

/// Route, rules and charges. False: it has been answered.
bool Passage::Prepare() {
  RequestView view;
  if (!Normalise(view)) return false;
  std::array<HeaderField, net::HttpHead::kMaxFields> headers;
  for (std::size_t i = 0; i < head_.field_count; ++i) {
    headers[i] = {head_.fields[i].name, head_.fields[i].value};
  }
  view.headers = {headers.data(), head_.field_count};
  const RuleSet& rules = *state_->policy.rules;
  const Address peer(client_->peer().bytes);
  view.client = ClientAddress(rules.client_policy(), peer, view.headers);
  view.has_client = true;
  view.trusted = trusted_ = rules.client_policy().Trusts(peer);
  if (view.client != peer) client_text_ = WriteAddress(view.client, memory_);
  if (trusted_) {
    if (const auto given = GivenRequestId(head_); !given.empty()) request_id_ = Keep(given);
  }
  if (Nominated(head_.all()).too_many()) {
    AnswerProblem(400, "Connection names too many fields", PassageOutcome::kBadRequest);
    return false;
  }
  route_ = state_->routing->Find(view);
  if (route_ != nullptr) {
    view.route = route_->spec.id;
  }
  books_.emplace(memory_);
  const auto access = rules.Match(view, std::nullopt, own_id_, {gateway_.overrides().table().get()},
                                  books_->charges, memory_);
  if (!access) {
    AnswerProblem(StatusOf(access.error().code), access.error().message,
                  PassageOutcome::kBadRequest);
    return false;
  }
  access_ = *access;
  return true;
}

void Passage::Decide() {
  auto& charges = books_->charges.charges;
  if (charges.empty()) return OnDecided();
  books_->decisions.resize(charges.size());
  gateway_.tally().Time(decision_mark_,
                        [&] { Start(asks_[0], Call::Kind::kApply, charges, books_->decisions); });
}

Answer Passage::AnswerOfCall() const noexcept {
  if (books_ && !books_->charges.charges.empty() && phase_ != Phase::kDeciding) {
    return AnswerOf(asks_[0]);
  }
  static const Charges kNone(*std::pmr::null_memory_resource());
  return AnswerOf(access_, books_ ? books_->charges : kNone);
}

void Passage::OnDecided() {
  gateway_.tally().Answered(decision_mark_);
  decided_ = net::Deadlines::Clock::now();
  phase_ = Phase::kConnecting;
  if (const auto& error = asks_[0].error; !books_->charges.charges.empty() && error) {
    const Error why = *error;
    books_->charges.charges.clear();  // Nothing was charged.
    return AnswerProblem(StatusOf(why.code), why.message, PassageOutcome::kClosed);
  }
  const Answer answer = AnswerOfCall();
  if (books_) CountSettled(gateway_.tally(), state_->policy, books_->charges);
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const Rule* const rule = books_->charges.rules[i];
    gateway_.tally().Count(state_->policy.slots[rule->number], answer.charges[i],
                           answer.decisions[i]);
  }
  if (const int status = answer.status(); status != 200) return AnswerDenied(answer, status);
  HoldLeases();
  if (client_ == nullptr) return End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
  if (route_ == nullptr) {
    return AnswerProblem(404, "no route leads from here", PassageOutcome::kNoRoute);
  }
  if (route_->body_bytes != 0 && head_.body == net::HttpBody::kLength &&
      head_.content_length > route_->body_bytes) {
    return AnswerProblem(413, "the body is longer than this gateway passes on",
                         PassageOutcome::kBadRequest);
  }
  pool_ = state_->pools[route_->upstream];
  pool_->budget().OnRequest();
  upgrade_ = MayUpgrade(head_);
  Attempt();
}

// --- Answers of our own ---------------------------------------------------------

void Passage::WriteRateLimit(OutBuffer& out, int status, const Config::Responses& responses) {
  const Answer answer = AnswerOfCall();
  if (answer.governing == nullptr) return;
  Micros jitter{0};
  if (status >= 400 && responses.retry_after_jitter > Micros{0}) {
    jitter = Micros{static_cast<std::int64_t>(
        gateway_.Random() % static_cast<std::uint64_t>(responses.retry_after_jitter.count() + 1))};
  }
  WriteAnswerFields(out, answer, status, responses, jitter);
}

void Passage::AnswerDenied(const Answer& answer, int status) {
  const auto outcome = status == 429               ? PassageOutcome::kLimited
                       : status != 403             ? PassageOutcome::kClosed
                       : !answer.banned_by.empty() ? PassageOutcome::kBanned
                                                   : PassageOutcome::kDenied;
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  if (grpc_ && status != 403) {
    AnswerGrpc(answer, status);
  } else {
    status_ = status;
    OutBuffer body;
    WriteAnswerJson(body, answer, status);
    body << '\n';
    OutBuffer& out = client_->BeginHead(status, net::ReasonPhrase(status));
    out << "Date: " << gateway_.reactor().date().Now() << "\r\nX-Request-Id: " << request_id_
        << "\r\n";
    if (answer.governing != nullptr) {
      WriteRateLimit(out, status, state_->policy.responses);
    } else {
      WriteAnswerFields(out, answer, status, state_->policy.responses, Micros{0});
    }
    out << "Content-Type: application/problem+json\r\n";
    client_->EndHead(AnswerBody::kLength, body.size());
    client_->SendBody(body.view());
    client_->SendEnd({}, {});
  }
  End(outcome, client_->Flush() ? ClientStream::Ending::kComplete : ClientStream::Ending::kCut);
}

/// gRPC's clients look at its own status: RESOURCE_EXHAUSTED, or UNAVAILABLE where a policy closed.
void Passage::AnswerGrpc(const Answer& answer, int status) {
  status_ = 200;
  OutBuffer& out = client_->BeginHead(200, "OK");
  out << "Date: " << gateway_.reactor().date().Now() << "\r\nX-Request-Id: " << request_id_
      << "\r\nContent-Type: application/grpc\r\ngrpc-status: " << (status == 429 ? 8 : 14)
      << "\r\ngrpc-message: "
      << (status == 429 ? "quota exceeded" : "temporarily reduced capacity");
  if (answer.governing != nullptr) out << ": rule " << answer.governing->rule;
  out << "\r\n";
  WriteRateLimit(out, status, state_->policy.responses);
  client_->EndHead(AnswerBody::kLength, 0);
  client_->SendEnd({}, {});
}

void Passage::AnswerProblem(int status, std::string_view detail, PassageOutcome outcome,
                            std::string_view lines) {
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  status_ = status;
  OutBuffer body;
  net::WriteProblem(body, status, detail);
  OutBuffer& out = client_->BeginHead(status, net::ReasonPhrase(status));
  out << "Date: " << gateway_.reactor().date().Now() << "\r\nX-Request-Id: " << request_id_
      << "\r\nCache-Control: no-store\r\n"
      << lines;
  if (phase_ != Phase::kDeciding) WriteRateLimit(out, 200, state_->policy.responses);
  out << "Content-Type: application/problem+json\r\n";
  client_->EndHead(AnswerBody::kLength, body.size());
  client_->SendBody(body.view());
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

/// The head's bytes give way to the body's: what the log needs is copied.
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
  if (phase_ == Phase::kDeciding) return;  // What it came to must still be settled.
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
  if (status_ >= 100) counters.statuses.Add(slot, static_cast<std::size_t>(status_ / 100 - 1));
  phase_ = Phase::kOver;
  pumping_ = false;
  SettleAccounts();
  ClientStream* const client = std::exchange(client_, nullptr);
  // From here on this may be another request's.
  FreeIfDone();
  if (client != nullptr) client->Finish(ending);
}

void Passage::FreeIfDone() {
  if (phase_ != Phase::kOver || open_asks_ > 0) return;
  phase_ = Phase::kFree;
  books_.reset();
  state_.reset();
  pool_.reset();
  member_.reset();
  memory_.release();
  gateway_.GivePassage(this);
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
  const Answer answer = AnswerOfCall();
  if (answer.governing != nullptr) {
    const Decision& decision = *answer.governing;
    out << R"(,"rule":")" << decision.rule << R"(","allowed":)"
        << (answer.allowed ? "true" : "false") << R"(,"remaining":)" << decision.remaining
        << R"(,"decided_by":")" << Name(decision.decided_by) << '"';
  } else if (!answer.banned_by.empty()) {
    out << R"(,"rule":")" << answer.banned_by << R"(","allowed":false)";
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

// SPDX-License-Identifier: Apache-2.0
// A passage and its upstream: attempts, and what flows in both directions.
//
// Each direction has one buffer and one rule: nothing is read from one side while the other has not
// taken what was read before. A slow reader so slows the writer down, and memory stays what it is.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"
#include "gateway/proxy_head.hpp"

namespace tidegate {
namespace {

using net::Channel;
using net::Deadlines;
using net::OutBuffer;
using net::Parsed;

/// So many buffers in a row, then the others have their turn.
constexpr int kMaxTurns = 16;
/// More interim answers than that mean no good.
constexpr int kMaxInterims = 16;
/// A client that moves less than this in one deadline is too slow.
constexpr std::uint64_t kMinProgress = 1024;

struct Verdict {
  int status;
  PassageOutcome outcome;
  std::string_view detail;
};

/// What the client is told. Names and addresses behind the gateway are not its business.
Verdict VerdictOf(AttemptFailure failure) noexcept {
  switch (failure) {
    case AttemptFailure::kConnect:
      return {502, PassageOutcome::kConnectFailed, "the upstream cannot be reached"};
    case AttemptFailure::kConnectTimeout:
      return {504, PassageOutcome::kConnectFailed, "the upstream cannot be reached in time"};
    case AttemptFailure::kTimeout:
      return {504, PassageOutcome::kTimeout, "the upstream did not answer in time"};
    case AttemptFailure::kReset:
      return {502, PassageOutcome::kUpstreamError, "the upstream ended the connection"};
    default:
      return {502, PassageOutcome::kUpstreamError, "the upstream's answer is no sound HTTP"};
  }
}

std::optional<GatewayCounters::Column> ColumnOf(AttemptFailure failure) noexcept {
  switch (failure) {
    case AttemptFailure::kConnect:
    case AttemptFailure::kConnectTimeout:
      return GatewayCounters::kConnectFailures;
    case AttemptFailure::kTimeout:
      return GatewayCounters::kTimeouts;
    case AttemptFailure::kReset:
      return GatewayCounters::kResets;
    case AttemptFailure::kStatus:
      return std::nullopt;  // A sound answer.
    default:
      return GatewayCounters::kBadAnswers;
  }
}

bool HasField(std::span<const net::HttpField> fields, std::string_view name) noexcept {
  return std::ranges::any_of(fields, [name](const net::HttpField& field) {
    return field.name.size() == name.size() && SameName(field.name, name);
  });
}

}  // namespace

// --- Attempts -------------------------------------------------------------------

void Passage::Attempt() {
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = state_->routing->upstream_slot(route_->upstream);
  const std::size_t tried =
      std::min(static_cast<std::size_t>(attempts_), static_cast<std::size_t>(kMaxTried));
  auto choice = pool_->Choose({tried_.data(), tried});
  if (choice.member == nullptr) {
    const bool full = choice.lack == Balancer::Lack::kFull;
    counters.upstreams.Add(slot, full ? GatewayCounters::kFull : GatewayCounters::kDown);
    return AnswerProblem(
        503, full ? "all targets of the upstream are busy" : "no target of the upstream is up",
        PassageOutcome::kUnavailable, "Retry-After: 1\r\n");
  }
  member_ = std::move(choice.member);
  counted_ = true;
  if (attempts_ < static_cast<int>(kMaxTried))
    tried_[static_cast<std::size_t>(attempts_)] = member_.get();
  ++attempts_;
  counters.upstreams.Add(slot, GatewayCounters::kAttempts);
  request_done_ = request_broken_ = sent_any_ = false;
  interims_ = 0;
  parser_.Reset();
  phase_ = Phase::kConnecting;
  bool ours = false;
  upstream_ = pool_->Lend(member_, *this, problem_, ours);
  if (upstream_ == nullptr) {
    (void)FailAttempt(AttemptFailure::kConnect, std::string(problem_),
                      ours ? Blame::kNobody : Blame::kTarget);
    return;
  }
  if (upstream_->up()) return SendRequest();
  Arm(KindOf(pool_->upstream().spec().connect_timeout));
}

void Passage::OnUpstreamUp() { SendRequest(); }

void Passage::OnUpstreamFailed(const std::string& problem) {
  upstream_ = nullptr;  // The pool has it already.
  (void)FailAttempt(AttemptFailure::kConnect, problem);
}

/// kOver, always: what becomes of the passage is decided here.
Passage::Pumped Passage::FailAttempt(AttemptFailure failure, std::string_view problem,
                                     Blame blame) {
  problem_ = problem;
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = state_->routing->upstream_slot(route_->upstream);
  if (const auto column = ColumnOf(failure)) counters.upstreams.Add(slot, *column);
  // A tunnel is nobody's answer any more, and either side may end it.
  if (blame == Blame::kTarget && phase_ != Phase::kTunnel &&
      NoteAttempt(*member_, AttemptResult::kBad, pool_->upstream().spec().ejection,
                  pool_->members(), gateway_.reactor().now())) {
    counters.upstreams.Add(slot, GatewayCounters::kEjections);
  }
  const bool nothing_sent = upstream_ == nullptr ||
                            upstream_->channel().sent() == upstream_begun_ ||
                            phase_ == Phase::kConnecting;
  ReleaseUpstream(false);
  Deadlines::Disarm(*this);
  pumping_ = false;
  // An answer of which nothing has left can still become another one; but what it said was noted,
  // so that it is not asked for a second time.
  const bool retracted = answer_begun_ && client_->Retract();
  if (retracted && books_) books_->costs.clear();
  if (answer_begun_ && !retracted) {
    End(PassageOutcome::kCut, ClientStream::Ending::kCut);
    return Pumped::kOver;
  }
  answer_begun_ = false;
  const Replay replay{nothing_sent, IsIdempotent(method_), !consumed_ && !retracted};
  if (MayRetry(pool_->upstream().spec().retries, failure, response_.status, attempts_, replay) &&
      (failure == AttemptFailure::kStatus || pool_->budget().Take())) {
    counters.upstreams.Add(slot, GatewayCounters::kRetries);
    Attempt();
    return Pumped::kOver;
  }
  const Verdict verdict = VerdictOf(failure);
  AnswerProblem(verdict.status, verdict.detail, verdict.outcome);
  return Pumped::kOver;
}

void Passage::ReleaseUpstream(bool reusable) {
  if (upstream_ != nullptr) {
    UpstreamConnection& connection = *std::exchange(upstream_, nullptr);
    if (reusable) {
      pool_->Return(connection);
    } else {
      pool_->Discard(connection);
    }
  }
  if (std::exchange(counted_, false)) UpstreamPool::Done(*member_);
}

// --- The request ------------------------------------------------------------------

void Passage::SendRequest() {
  Channel& channel = upstream_->channel();
  upstream_begun_ = channel.sent();
  sent_at_ = std::max(gateway_.reactor().now(), decided_);
  const RouteSpec& spec = route_->spec;
  const std::string_view host = spec.host == RouteSpec::Host::kTarget  ? member_->authority
                                : spec.host == RouteSpec::Host::kFixed ? spec.host_name
                                : head_.host.empty()                   ? member_->authority
                                                                       : head_.host;
  WriteRequestHead(channel.out(), head_,
                   {.path = route_->Rewrite(path_, memory_),
                    .host = host,
                    .peer = peer_text_,
                    .scheme = "http",
                    .request_id = request_id_,
                    .trusted = trusted_,
                    .underscores = state_->routing->gateway().underscores,
                    .upgrade = upgrade_},
                   spec.request_headers);
  phase_ = Phase::kSending;
  if (const auto whole = client_->WholeBody()) {
    if (!channel.Send(*whole)) request_broken_ = true;
    request_done_ = true;
  } else if (head_.body == net::HttpBody::kLength || head_.body == net::HttpBody::kChunked) {
    KeepHead();
  }
  Pump();
}

void Passage::OnUpstreamReady() { Pump(); }

void Passage::OnClientReady() {
  if (phase_ != Phase::kDeciding && phase_ != Phase::kConnecting) Pump();
}

void Passage::Pump() {
  if (phase_ == Phase::kOrphan) return PumpOrphan();
  if (std::exchange(pumping_, true)) return;
  if (PumpRequest() == Pumped::kOver || PumpResponse() == Pumped::kOver) return;
  pumping_ = false;
  Settle();
}

void Passage::WriteChunk(Channel& channel, std::string_view data) {
  std::array<char, 16> size{};
  const char* const end =
      std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  channel.out() << std::string_view(size.data(), static_cast<std::size_t>(end - size.data()))
                << "\r\n";
  if (!channel.Send(data)) request_broken_ = true;
  channel.out() << "\r\n";
}

void Passage::EndRequest(Channel& channel) {
  request_done_ = true;
  if (phase_ == Phase::kTunnel || head_.body != net::HttpBody::kChunked) return;
  OutBuffer& out = channel.out();
  out << "0\r\n";
  WriteTrailers(out, client_->trailers(), route_->spec.request_headers);
  out << "\r\n";
}

Passage::Pumped Passage::PumpRequest() {
  Channel& channel = upstream_->channel();
  for (int turn = 0;; ++turn) {
    // An upstream that takes no more may still have answered: that is looked at next.
    if (request_broken_ || (channel.blocked() && !channel.Flush())) {
      request_broken_ = true;
      return Pumped::kWait;
    }
    if (channel.blocked()) return Pumped::kWait;
    if (request_done_) {
      if (phase_ == Phase::kSending) phase_ = Phase::kAwaiting;
      if (phase_ == Phase::kTunnel) channel.ShutdownWrite();
      return Pumped::kWait;
    }
    if (turn == kMaxTurns) {
      gateway_.reactor().Again(*upstream_);
      return Pumped::kWait;
    }
    if (!head_kept_) KeepHead();
    consumed_ = true;
    switch (client_->ReadBody()) {
      case ClientStream::Body::kData: {
        const std::string_view data = client_->body();
        body_bytes_ += data.size();
        if (route_->body_bytes != 0 && phase_ != Phase::kTunnel &&
            body_bytes_ > route_->body_bytes) {
          return RefuseBody({413, "the body is longer than this gateway passes on"});
        }
        if (phase_ != Phase::kTunnel && head_.body == net::HttpBody::kChunked) {
          WriteChunk(channel, data);
        } else if (!channel.Send(data)) {
          request_broken_ = true;
        }
        client_->TakeBody();
        break;
      }
      case ClientStream::Body::kWait:
        if (!channel.Flush()) request_broken_ = true;
        return Pumped::kWait;
      case ClientStream::Body::kEnd:
        EndRequest(channel);
        break;
      case ClientStream::Body::kRefused:
        return RefuseBody(client_->refusal());
      case ClientStream::Body::kGone:
        End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
        return Pumped::kOver;
    }
  }
}

/// A body that turned out to be malformed or too long: the upstream must not take what it has got
/// for all of it.
Passage::Pumped Passage::RefuseBody(const net::HttpRefusal& refusal) {
  ReleaseUpstream(false);
  client_->CloseAfter();
  if (answer_begun_) {
    End(PassageOutcome::kBadRequest, ClientStream::Ending::kCut);
  } else {
    AnswerProblem(refusal.status, refusal.reason, PassageOutcome::kBadRequest);
  }
  return Pumped::kOver;
}

// --- The answer ---------------------------------------------------------------------

Passage::Pumped Passage::PumpResponse() {
  for (int turn = 0;; ++turn) {
    if (client_->blocked()) {
      if (!client_->Flush()) return LoseClient();
      if (client_->blocked()) return Pumped::kWait;
    }
    if (turn == kMaxTurns) {
      gateway_.reactor().Again(*upstream_);
      return Pumped::kWait;
    }
    const Pumped pumped = answer_begun_ ? ReadResponseBody() : ReadResponseHead();
    if (pumped != Pumped::kMore) return pumped;
  }
}

/// Where nothing comes, what there is for the client leaves now: nobody knows when more will.
Passage::Pumped Passage::FillFromUpstream() {
  Channel& channel = upstream_->channel();
  switch (channel.Fill()) {
    case Channel::Got::kBytes:
      return Pumped::kMore;
    case Channel::Got::kNothing:
      if (request_broken_)
        return FailAttempt(AttemptFailure::kReset, "it takes no more and says nothing");
      if (!client_->Flush()) return LoseClient();
      return Pumped::kWait;
    case Channel::Got::kFull: {
      const bool room =
          answer_begun_ ? channel.Compact() : channel.Grow(gateway_.options().limits.header_bytes);
      if (room) return Pumped::kMore;
      return FailAttempt(AttemptFailure::kBadAnswer, "the head of its answer is too long");
    }
    case Channel::Got::kEnd:
      if (answer_begun_ && body_.EndsAtClose()) return FinishResponse();
      return FailAttempt(AttemptFailure::kReset, answer_begun_
                                                     ? "it ended before its answer did"
                                                     : "it ended the connection without an answer");
    case Channel::Got::kBroken:
      return FailAttempt(AttemptFailure::kReset, "the connection broke off");
  }
  return Pumped::kWait;
}

Passage::Pumped Passage::ReadResponseHead() {
  Channel& channel = upstream_->channel();
  if (channel.input().empty()) return FillFromUpstream();
  const auto to = method_ == "HEAD" ? net::AnswerTo::kHead : net::AnswerTo::kOther;
  switch (parser_.Parse(channel.input(), gateway_.options().limits, to, response_)) {
    case Parsed::kMore:
      return FillFromUpstream();
    case Parsed::kRefused:
      return FailAttempt(AttemptFailure::kBadAnswer, parser_.reason());
    case Parsed::kDone:
      break;
  }
  if (response_.status == 101) return SwitchProtocols();
  if (response_.status < 200) return RelayInterim();
  return OnResponseHead();
}

Passage::Pumped Passage::RelayInterim() {
  if (++interims_ > kMaxInterims) {
    return FailAttempt(AttemptFailure::kBadAnswer, "it sends interim answers without an end");
  }
  if (OutBuffer* const out = client_->BeginInterim(response_.status, response_.reason)) {
    static const HeaderEdits kNone;  // What the route changes, it changes in the answer itself.
    (void)WriteAnswerHead(*out, response_,
                          {.request_id = {}, .date = gateway_.reactor().date().Now()}, kNone);
    client_->EndInterim();
  }
  upstream_->channel().Drop(parser_.consumed());
  parser_.Reset();
  return Pumped::kMore;
}

Passage::Pumped Passage::OnResponseHead() {
  const UpstreamSpec& spec = pool_->upstream().spec();
  if (Nominated(response_.all()).too_many()) {
    return FailAttempt(AttemptFailure::kBadAnswer, "its Connection names too many fields");
  }
  CountAnswer();
  const bool bad = response_.status >= 502 && response_.status <= 504;
  if (bad && !spec.retries.statuses.empty()) {
    const Replay replay{false, IsIdempotent(method_), !consumed_};
    // Without a budget this answer is better than none.
    if (MayRetry(spec.retries, AttemptFailure::kStatus, response_.status, attempts_, replay) &&
        pool_->budget().Take()) {
      return FailAttempt(AttemptFailure::kStatus, "its status says that another should be asked");
    }
  }
  if (NoteAttempt(*member_, bad ? AttemptResult::kBad : AttemptResult::kGood, spec.ejection,
                  pool_->members(), gateway_.reactor().now())) {
    gateway_.counters().upstreams.Add(state_->routing->upstream_slot(route_->upstream),
                                      GatewayCounters::kEjections);
  }
  if (!problem_.empty()) problem_.clear();  // Of an attempt before.
  NoteCosts(response_.all());
  status_ = response_.status;
  answer_begun_ = true;
  phase_ = Phase::kAnswering;
  WriteAnswer();
  body_.Begin(response_.body, response_.content_length);
  upstream_->channel().Drop(parser_.consumed());
  return ReadResponseBody();
}

/// The head as the client gets it.
void Passage::WriteAnswer() {
  const bool stream = response_.body == net::ResponseBody::kChunked ||
                      response_.body == net::ResponseBody::kUntilClose;
  const Answer answer = AnswerOfCall();
  OutBuffer& out = client_->BeginHead(response_.status, response_.reason);
  const OlderFields older = WriteAnswerHead(
      out, response_,
      {.request_id = request_id_,
       .date = gateway_.reactor().date().Now(),
       .governing = answer.governing,
       .older = {state_->policy.responses.ratelimit_legacy, state_->policy.responses.x_ratelimit},
       .stream = stream},
      route_->spec.response_headers);
  if (answer.governing != nullptr) {
    Config::Responses responses = state_->policy.responses;
    responses.ratelimit_legacy = older.ratelimit;
    responses.x_ratelimit = older.x_ratelimit;
    WriteRateLimit(out, 200, responses);
  }
  AnswerBody body = stream ? AnswerBody::kStream : AnswerBody::kNone;
  if (response_.body == net::ResponseBody::kLength) body = AnswerBody::kLength;
  if (response_.body == net::ResponseBody::kNone && method_ == "HEAD") {
    if (HasField(response_.all(), "content-length")) body = AnswerBody::kLength;
    if (HasField(response_.all(), "transfer-encoding")) body = AnswerBody::kStream;
  }
  client_->EndHead(body, response_.content_length);
}

Passage::Pumped Passage::ReadResponseBody() {
  Channel& channel = upstream_->channel();
  const Parsed parsed = body_.Read(channel.raw());
  if (parsed == Parsed::kRefused) {
    return FailAttempt(AttemptFailure::kBadAnswer, body_.refusal().reason);
  }
  if (!body_.data().empty()) client_->SendBody(body_.data());
  if (parsed == Parsed::kDone) return FinishResponse();
  const bool any = !body_.data().empty();
  channel.Drop(body_.eaten());
  if (any) return Pumped::kMore;  // Whether the client takes it is looked at first.
  return FillFromUpstream();
}

Passage::Pumped Passage::FinishResponse() {
  const bool tunnel = phase_ == Phase::kTunnel;
  if (!tunnel) {
    NoteCosts(body_.trailers());
    client_->SendEnd(body_.trailers(), route_->spec.response_headers);
  }
  const bool whole = request_done_ && !request_broken_ && !tunnel;
  upstream_->channel().Drop(body_.eaten());
  ReleaseUpstream(whole && response_.keep_alive);
  const bool there = client_->Flush();
  End(PassageOutcome::kPassed,
      there ? ClientStream::Ending::kComplete : ClientStream::Ending::kCut);
  return Pumped::kOver;
}

/// It takes no more.
Passage::Pumped Passage::LoseClient() {
  if (!ReadsOn()) {
    End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
    return Pumped::kOver;
  }
  KeepHead();
  ClientStream& client = *std::exchange(client_, nullptr);
  bytes_in_ = client.received();
  bytes_out_ = client.sent();
  BeginOrphan();
  client.Finish(ClientStream::Ending::kCut);
  PumpOrphan();
  return Pumped::kOver;
}

/// Who leaves just before the trailers that tell the cost would have had it for nothing.
bool Passage::ReadsOn() const noexcept {
  return phase_ == Phase::kAnswering && response_.body == net::ResponseBody::kChunked && OwesCost();
}

void Passage::BeginOrphan() {
  phase_ = Phase::kOrphan;
  pumping_ = false;
  body_bytes_ = 0;
}

void Passage::PumpOrphan() {
  constexpr std::uint64_t kMost = 1u << 20;
  constexpr auto kGone = PassageOutcome::kClientGone;
  Channel& channel = upstream_->channel();
  while (true) {
    const Parsed parsed = body_.Read(channel.raw());
    body_bytes_ += body_.data().size();
    if (parsed == Parsed::kDone) NoteCosts(body_.trailers());
    if (parsed != Parsed::kMore || body_bytes_ > kMost) {
      return End(kGone, ClientStream::Ending::kCut);
    }
    channel.Drop(body_.eaten());
    switch (channel.Fill()) {
      case Channel::Got::kBytes:
        break;
      case Channel::Got::kFull:
        if (channel.Compact()) break;
        return End(kGone, ClientStream::Ending::kCut);
      case Channel::Got::kNothing:
        // As long as a client's body may pause: not renewed by what comes.
        if (armed_phase_ != phase_ || !Deadlines::IsArmed(*this)) Arm(Deadlines::Kind::kBody);
        return;
      case Channel::Got::kEnd:
      case Channel::Got::kBroken:
        return End(kGone, ClientStream::Ending::kCut);
    }
  }
}

/// From now on both directions are bytes that nobody here understands, until either side ends.
Passage::Pumped Passage::SwitchProtocols() {
  OutBuffer* const out = upgrade_ && response_.upgrade && request_done_
                             ? client_->BeginInterim(101, response_.reason)
                             : nullptr;
  if (out == nullptr) {
    return FailAttempt(AttemptFailure::kBadAnswer,
                       "it changes the protocol, which nobody asked for");
  }
  CountAnswer();
  (void)NoteAttempt(*member_, AttemptResult::kGood, pool_->upstream().spec().ejection,
                    pool_->members(), gateway_.reactor().now());
  status_ = 101;
  answer_begun_ = true;
  phase_ = Phase::kTunnel;
  (void)WriteAnswerHead(
      *out, response_,
      {.request_id = request_id_, .date = gateway_.reactor().date().Now(), .upgrade = true},
      route_->spec.response_headers);
  WriteRateLimit(*out, 200, state_->policy.responses);
  client_->EndInterim();
  upstream_->channel().Drop(parser_.consumed());
  KeepHead();
  client_->Switch();
  body_.Begin(net::ResponseBody::kUntilClose, 0);
  request_done_ = false;
  // What the client sent behind its request is the first of the other protocol.
  return PumpRequest() == Pumped::kOver ? Pumped::kOver : Pumped::kMore;
}

void Passage::CountAnswer() {
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = state_->routing->upstream_slot(route_->upstream);
  const auto took = Deadlines::Clock::now() - sent_at_;
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  counters.upstreams.Add(slot, GatewayCounters::kMicros, static_cast<std::uint64_t>(micros));
  std::size_t bucket = 0;
  while (bucket < GatewayCounters::kMillis.size() &&
         micros > GatewayCounters::kMillis[bucket] * 1000) {
    ++bucket;
  }
  counters.upstreams.Add(slot, GatewayCounters::kBuckets + bucket);
}

// --- Time ---------------------------------------------------------------------------

std::uint64_t Passage::Moved() const noexcept {
  const Channel& channel = upstream_->channel();
  if (client_ == nullptr) return channel.received();
  return channel.received() + channel.sent() + client_->received() + client_->sent();
}

void Passage::Arm(Deadlines::Kind kind) noexcept {
  armed_ = kind;
  armed_phase_ = phase_;
  mark_ = upstream_ == nullptr ? 0 : Moved();
  gateway_.reactor().deadlines().Arm(*this, kind, gateway_.reactor().now());
}

Deadlines::Kind Passage::KindOf(Micros duration) const noexcept {
  return gateway_.reactor().deadlines().KindFor(duration);
}

/// Who is waited for, and for how long.
void Passage::Settle() {
  Micros wait = pool_->upstream().spec().idle_timeout;
  std::optional<Deadlines::Kind> fixed;  // Of the listener's limits.
  switch (phase_) {
    case Phase::kSending:
      // The client's body, unless the upstream does not take it, or has not said yet that it will.
      if (client_->awaits_continue()) {
        wait = route_->response_timeout;
      } else if (!upstream_->channel().blocked()) {
        fixed = Deadlines::Kind::kBody;
      }
      break;
    case Phase::kAwaiting:
      wait = route_->response_timeout;
      break;
    case Phase::kAnswering:
      if (client_->blocked()) fixed = Deadlines::Kind::kWrite;
      break;
    case Phase::kTunnel:
      break;
    default:
      return;
  }
  const Deadlines::Kind kind = fixed ? *fixed : KindOf(wait);
  if (kind != armed_ || phase_ != armed_phase_ || !Deadlines::IsArmed(*this)) Arm(kind);
}

void Passage::OnDeadline(Deadlines::Kind kind) {
  if (phase_ == Phase::kOrphan) {
    return End(PassageOutcome::kClientGone, ClientStream::Ending::kCut);
  }
  if (phase_ == Phase::kConnecting) {
    (void)FailAttempt(AttemptFailure::kConnectTimeout, "no connection in time");
    return;
  }
  const std::uint64_t moved = Moved() - mark_;
  switch (phase_) {
    case Phase::kSending:
      if (kind == Deadlines::Kind::kBody) {
        if (moved >= kMinProgress) return Arm(kind);
        (void)RefuseBody({408, "the request's body arrives too slowly"});
        return;
      }
      if (moved > 0) return Arm(kind);
      if (client_->awaits_continue()) {
        // A client that waits, with an upstream that waits too: neither is to blame for sure.
        (void)FailAttempt(AttemptFailure::kTimeout, "it does not ask for the body", Blame::kNobody);
        return;
      }
      (void)FailAttempt(AttemptFailure::kTimeout, "it does not take the request");
      return;
    case Phase::kAwaiting:
      (void)FailAttempt(AttemptFailure::kTimeout, "no answer in time");
      return;
    case Phase::kAnswering:
      if (moved >= (kind == Deadlines::Kind::kWrite ? kMinProgress : 1)) return Arm(kind);
      problem_ = kind == Deadlines::Kind::kWrite ? "the client takes the answer too slowly"
                                                 : "the answer did not go on in time";
      return End(
          kind == Deadlines::Kind::kWrite ? PassageOutcome::kClientGone : PassageOutcome::kCut,
          ClientStream::Ending::kCut);
    case Phase::kTunnel:
      if (moved > 0) return Arm(kind);
      problem_ = "no byte in either direction for too long";
      return End(PassageOutcome::kPassed, ClientStream::Ending::kComplete);
    default:
      return;
  }
}

}  // namespace tidegate

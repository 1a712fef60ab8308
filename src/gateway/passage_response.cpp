// SPDX-License-Identifier: Apache-2.0
// Forwards the response from the upstream to the client, or discards it if the client is gone.
#include <algorithm>
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

/// A limit for the interim responses (1xx) of one request.
constexpr int kMaxInterims = 16;

/// Returns true if the upstream switches to the protocol that the client requested: the same name
/// and, if the client named a version, the same version. Upper and lower case are equal.
bool IsRequestedProtocol(std::string_view requested, std::string_view offered) noexcept {
  if (SameName(requested, offered)) return true;
  return requested.find('/') == std::string_view::npos &&
         SameName(requested, offered.substr(0, offered.find('/')));
}

bool HasField(std::span<const net::HttpField> fields, std::string_view name) noexcept {
  return std::ranges::any_of(fields, [name](const net::HttpField& field) {
    return field.name.size() == name.size() && SameName(field.name, name);
  });
}

}  // namespace

Passage::Pumped Passage::PumpResponse() {
  if (phase_ == Phase::kTunnel && tunnel_ended_) return AwaitTunnelEnd();
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

/// Reads from the upstream. If there is nothing to read, flushes the client's output, because it is
/// unknown when more will follow.
Passage::Pumped Passage::FillFromUpstream() {
  Channel& channel = upstream_->channel();
  switch (channel.Fill()) {
    case Channel::Got::kBytes:
      return Pumped::kMore;
    case Channel::Got::kNothing:
      if (request_broken_)
        return FailAttempt(AttemptFailure::kReset, "connection broken before the response");
      if (!client_->Flush()) return LoseClient();
      return Pumped::kWait;
    case Channel::Got::kFull: {
      const std::size_t head = decision_->snapshot().routes->gateway().response_header_bytes;
      if (answer_begun_ ? channel.Compact() : channel.Grow(head)) return Pumped::kMore;
      return FailAttempt(AttemptFailure::kBadAnswer, "response head is longer than the limit");
    }
    case Channel::Got::kEnd:
      if (phase_ == Phase::kTunnel) return EndTunnelFromUpstream();
      if (answer_begun_ && body_.EndsAtClose()) return FinishResponse();
      return FailAttempt(AttemptFailure::kReset, answer_begun_
                                                     ? "connection closed during the response"
                                                     : "connection closed without a response");
    case Channel::Got::kBroken:
      return FailAttempt(AttemptFailure::kReset, "connection reset");
  }
  return Pumped::kWait;
}

Passage::Pumped Passage::ReadResponseHead() {
  Channel& channel = upstream_->channel();
  if (channel.input().empty()) return FillFromUpstream();
  const auto to = method_ == "HEAD" ? net::AnswerTo::kHead : net::AnswerTo::kOther;
  const GatewaySpec& gateway = decision_->snapshot().routes->gateway();
  const net::HttpLimits limits{.header_bytes = gateway.response_header_bytes,
                               .header_count = gateway.response_header_count};
  switch (parser_.Parse(channel.input(), limits, to, response_)) {
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
    return FailAttempt(AttemptFailure::kBadAnswer, "too many interim responses");
  }
  if (OutBuffer* const out = client_->BeginInterim(response_.status, response_.reason)) {
    static const HeaderEdits kNone;  // The route's header edits apply to the final response only.
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
    return FailAttempt(AttemptFailure::kBadAnswer, "invalid Connection header: too many names");
  }
  CountAnswer();
  const bool bad = response_.status >= 502 && response_.status <= 504;
  if (bad && !spec.retries.statuses.empty()) {
    const Replay replay{false, IsIdempotent(method_), !consumed_};
    // If the retry budget is used up, forward this response rather than none.
    if (MayRetry(spec.retries, AttemptFailure::kStatus, response_.status, attempts_, replay) &&
        pool_->budget().Take()) {
      return FailAttempt(AttemptFailure::kStatus, "retried because of the response's status");
    }
  }
  if (NoteAttempt(*member_, bad ? AttemptResult::kBad : AttemptResult::kGood, spec.ejection,
                  pool_->members(), gateway_.reactor().now())) {
    gateway_.counters().upstreams.Add(decision_->snapshot().routes->upstream_slot(route_->upstream),
                                      GatewayCounters::kEjections);
  }
  if (!problem_.empty()) problem_.clear();  // From an earlier attempt.
  NoteCosts(response_.all());
  status_ = response_.status;
  answer_begun_ = true;
  phase_ = Phase::kAnswering;
  WriteAnswer();
  body_.Begin(response_.body, response_.content_length, pool_->upstream().line_end());
  upstream_->channel().Drop(parser_.consumed());
  return ReadResponseBody();
}

/// Writes the head of the response to the client.
void Passage::WriteAnswer() {
  const bool stream = response_.body == net::ResponseBody::kChunked ||
                      response_.body == net::ResponseBody::kUntilClose;
  Answer answer = ClientAnswer();
  const Decision* governing = answer.shown;
  // Without a counted quota there are no RateLimit fields of ours, and the upstream's pass.
  if (governing != nullptr && !IsCounted(*governing)) governing = nullptr;
  OutBuffer& out = client_->BeginHead(response_.status, response_.reason);
  const OlderFields older =
      WriteAnswerHead(out, response_,
                      {.request_id = request_id_,
                       .date = gateway_.reactor().date().Now(),
                       .governing = governing,
                       .older = {decision_->snapshot().responses.ratelimit_legacy,
                                 decision_->snapshot().responses.x_ratelimit},
                       .stream = stream},
                      route_->spec.response_headers);
  Config::Responses responses = decision_->snapshot().responses;
  responses.ratelimit_legacy = older.ratelimit;
  responses.x_ratelimit = older.x_ratelimit;
  answer.shows_more_after = response_.status < 400 || !HasField(response_.all(), "retry-after");
  if (answer.governing != nullptr) WriteAnswerFields(out, answer, 200, responses, Micros{0});
  AnswerBody body = stream ? AnswerBody::kStream : AnswerBody::kNone;
  if (response_.body == net::ResponseBody::kLength) body = AnswerBody::kLength;
  // A 204 has neither field, even if the upstream sent one (RFC 9110, 8.6).
  if (response_.body == net::ResponseBody::kNone && method_ == "HEAD" && response_.status != 204) {
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
  if (any) return Pumped::kMore;  // The caller first checks whether the client is blocked.
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

/// Called when the client's connection accepts no more.
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

/// A client that disconnects just before the trailers with the cost must not avoid the cost.
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
        // The deadline is limits.body_timeout in total: input does not prolong it.
        if (armed_phase_ != phase_ || !Deadlines::IsArmed(*this)) Arm(Deadlines::Kind::kBody);
        return;
      case Channel::Got::kEnd:
      case Channel::Got::kBroken:
        return End(kGone, ClientStream::Ending::kCut);
    }
  }
}

/// Returns true if the 101 switches to the one protocol that the client requested. Any other bytes
/// would reach a client that cannot read them, and that may take them for HTTP.
bool Passage::SwitchesAsRequested() const noexcept {
  if (!upgrade_ || !response_.upgrade || !request_done_) return false;
  std::size_t protocols = 0;
  bool requested = false;
  for (const net::HttpField& field : response_.all()) {
    if (!SameName(field.name, "upgrade")) continue;
    EachElement(field.value, [&](std::string_view protocol) {
      ++protocols;
      requested = IsRequestedProtocol(protocol_, protocol);
      return true;
    });
  }
  return protocols == 1 && requested;
}

/// Turns the passage into a tunnel: bytes are forwarded unparsed in both directions until both
/// sides have ended.
Passage::Pumped Passage::SwitchProtocols() {
  OutBuffer* const out =
      SwitchesAsRequested() ? client_->BeginInterim(101, response_.reason) : nullptr;
  if (out == nullptr) {
    return FailAttempt(AttemptFailure::kBadAnswer, "unexpected 101 (Switching Protocols)");
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
  WriteRateLimit(*out, 200, decision_->snapshot().responses);
  client_->EndInterim();
  upstream_->channel().Drop(parser_.consumed());
  KeepHead();
  client_->Switch();
  body_.Begin(net::ResponseBody::kUntilClose, 0);
  request_done_ = tunnel_ended_ = false;
  // Bytes that the client sent after its request are the first bytes of the new protocol.
  return PumpRequest() == Pumped::kOver ? Pumped::kOver : Pumped::kMore;
}

/// The upstream has ended its half of the tunnel: forwards the end to the client, after all bytes
/// that were read before, and lets the client finish its half.
Passage::Pumped Passage::EndTunnelFromUpstream() {
  if (!client_->Flush()) return LoseClient();
  if (client_->blocked()) return Pumped::kWait;  // The next read finds the end of stream again.
  client_->EndSending();
  tunnel_ended_ = true;
  return AwaitTunnelEnd();
}

/// After the upstream's end: finishes if the client has ended too, or if the upstream accepts no
/// more bytes. Else the client may still send; the idle timeout limits how long.
Passage::Pumped Passage::AwaitTunnelEnd() {
  const Channel& channel = upstream_->channel();
  const bool client_ended = request_done_ && !channel.blocked();
  if (client_ended || request_broken_ || channel.reset()) return FinishResponse();
  return Pumped::kWait;
}

void Passage::CountAnswer() {
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = decision_->snapshot().routes->upstream_slot(route_->upstream);
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

}  // namespace tidegate

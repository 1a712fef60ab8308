// SPDX-License-Identifier: Apache-2.0
// Forwarding in both directions, and the deadlines of an exchange.
#include <utility>

#include "gateway/gateway.hpp"
#include "gateway/proxied_exchange.hpp"
#include "gateway/proxy_head.hpp"

namespace tidegate {
namespace {

using net::Deadlines;
using net::OutBuffer;
using Blame = UpstreamAttempt::Blame;
using Ending = ClientStream::Ending;

/// The most buffers forwarded in a row before other connections get their turn.
constexpr int kMaxTurns = 16;

}  // namespace

// --- From the client to the upstream ------------------------------------------

void ProxiedExchange::Pump() {
  if (phase_ == Phase::kDraining) return Drain();
  if (std::exchange(pumping_, true)) return;
  if (PumpRequest() == Step::kOver || PumpResponse() == Step::kOver) return;
  pumping_ = false;
  ArmNext();
}

/// Forwards the request until it must wait. Returns kWait also if the upstream accepts no more,
/// because the upstream may have responded nevertheless.
ProxiedExchange::Step ProxiedExchange::PumpRequest() {
  for (int turn = 0;; ++turn) {
    if (!attempt_.broken()) attempt_.Flush();
    if (attempt_.broken() || attempt_.blocked()) return Step::kWait;
    if (attempt_.sent()) {
      if (phase_ == Phase::kSending) phase_ = Phase::kAwaiting;
      if (tunnels()) attempt_.EndSending();
      return Step::kWait;
    }
    if (turn == kMaxTurns) {
      attempt_.Yield();
      return Step::kWait;
    }
    const Step step = ForwardBody();
    if (step != Step::kMore) return step;
  }
}

/// Forwards one buffer of the body, or its end.
ProxiedExchange::Step ProxiedExchange::ForwardBody() {
  CopyText();
  switch (client_->ReadBody()) {
    case ClientStream::Body::kData: {
      const std::string_view data = client_->body();
      body_bytes_ += data.size();
      if (route_->body_bytes != 0 && !tunnels() && body_bytes_ > route_->body_bytes) {
        return RefuseBody({413, "the body is longer than the route's body_bytes"});
      }
      if (!tunnels() && head_.body == net::BodyFraming::kChunked) {
        attempt_.SendChunk(data);
      } else {
        attempt_.SendBody(data);
      }
      client_->TakeBody();
      return Step::kMore;
    }
    case ClientStream::Body::kWait: attempt_.Flush(); return Step::kWait;
    case ClientStream::Body::kEnd: EndRequest(); return Step::kMore;
    case ClientStream::Body::kRefused: return RefuseBody(client_->refusal());
    case ClientStream::Body::kGone: break;
  }
  End(ExchangeOutcome::kClientGone, Ending::kCut);
  return Step::kOver;
}

void ProxiedExchange::EndRequest() {
  attempt_.EndRequest();
  if (tunnels() || head_.body != net::BodyFraming::kChunked) return;
  OutBuffer& out = attempt_.out();
  out << "0\r\n";
  const RequestFields::Policy policy = FieldPolicy();
  WriteTrailers(out, client_->trailers(), route_->spec.request_headers, &policy);
  out << "\r\n";
}

/// Rejects a body that is malformed, too long or too slow. Closes the upstream's connection, so
/// that the upstream does not mistake a part of the body for the whole.
ProxiedExchange::Step ProxiedExchange::RefuseBody(const net::HttpRefusal& refusal) {
  attempt_.Close();
  client_->CloseAfter();
  if (phase_ >= Phase::kResponding) {
    End(ExchangeOutcome::kBadRequest, Ending::kCut);
  } else {
    AnswerProblem(refusal.status, refusal.reason, ExchangeOutcome::kBadRequest);
  }
  return Step::kOver;
}

// --- From the upstream to the client ------------------------------------------

ProxiedExchange::Step ProxiedExchange::PumpResponse() {
  if (phase_ == Phase::kTunnelEnding) return AwaitTunnelEnd();
  for (int turn = 0;; ++turn) {
    if (client_->blocked()) {
      if (!client_->Flush()) return LoseClient();
      if (client_->blocked()) return Step::kWait;
    }
    if (turn == kMaxTurns) {
      attempt_.Yield();
      return Step::kWait;
    }
    const Step step = phase_ >= Phase::kResponding ? ForwardResponseBody() : ForwardHead();
    if (step != Step::kMore) return step;
  }
}

ProxiedExchange::Step ProxiedExchange::ForwardHead() {
  const auto to = text_.method == "HEAD" ? net::AnswerTo::kHead : net::AnswerTo::kOther;
  const UpstreamAttempt::Got got = attempt_.ReadHead(to);
  if (got == UpstreamAttempt::Got::kWait) return AwaitUpstream();
  if (got == UpstreamAttempt::Got::kFailed) {
    FailAttempt();
    return Step::kOver;
  }
  const int status = attempt_.head().status;
  if (status == 101) return SwitchProtocols();
  return status < 200 ? ForwardInterim() : BeginResponse();
}

ProxiedExchange::Step ProxiedExchange::ForwardInterim() {
  const net::ResponseHead& head = attempt_.head();
  if (OutBuffer* const out = client_->BeginInterim(head.status, head.reason)) {
    static const HeaderEdits kNone;  // The route's header edits apply to the final response only.
    (void)WriteAnswerHead(*out, head, {.request_id = {}, .date = net::HttpDate()}, kNone);
    client_->EndInterim();
  }
  attempt_.DropInterim();
  return Step::kMore;
}

ProxiedExchange::Step ProxiedExchange::BeginResponse() {
  const net::ResponseHead& head = attempt_.head();
  attempt_.CountResponse();
  const bool bad = head.status >= 502 && head.status <= 504;
  const UpstreamSpec::Retries& retries = attempt_.spec().retries;
  if (bad && !retries.statuses.empty()) {
    const Replay replay{false, IsIdempotent(text_.method), request_ == Request::kWhole};
    // If the retry budget is used up, forward this response rather than none.
    if (MayRetry(retries, AttemptFailure::kStatus, head.status, tried_.count(), replay) &&
        attempt_.pool().budget().Take()) {
      return Fail(AttemptFailure::kStatus, "retried because of the response's status");
    }
  }
  attempt_.NoteResult(bad ? AttemptResult::kBad : AttemptResult::kGood);
  quotas_.NoteCosts(head.all());
  status_ = head.status;
  phase_ = Phase::kResponding;
  WriteResponseHead();
  attempt_.BeginBody();
  return ForwardResponseBody();
}

ProxiedExchange::Step ProxiedExchange::ForwardResponseBody() {
  switch (attempt_.ReadBody()) {
    case UpstreamAttempt::Got::kData:
      client_->SendBody(attempt_.data());
      attempt_.TakeBody();
      return Step::kMore;  // The caller first checks whether the client is blocked.
    case UpstreamAttempt::Got::kWait: return AwaitUpstream();
    case UpstreamAttempt::Got::kEnd:
      if (tunnels()) return EndTunnel();
      if (!attempt_.data().empty()) client_->SendBody(attempt_.data());
      return FinishResponse();
    case UpstreamAttempt::Got::kFailed: break;
  }
  FailAttempt();
  return Step::kOver;
}

ProxiedExchange::Step ProxiedExchange::FinishResponse() {
  if (!tunnels()) {
    quotas_.NoteCosts(attempt_.trailers());
    client_->SendEnd(attempt_.trailers(), route_->spec.response_headers);
  }
  attempt_.Finish();
  const bool there = client_->Flush();
  End(ExchangeOutcome::kPassed, there ? Ending::kComplete : Ending::kCut);
  return Step::kOver;
}

// --- Tunnels ------------------------------------------------------------------

/// Turns the exchange into a tunnel, which forwards bytes in both directions until both sides have
/// ended. Only the protocol that the client requested is allowed, because the client may mistake
/// any other protocol for HTTP.
ProxiedExchange::Step ProxiedExchange::SwitchProtocols() {
  const net::ResponseHead& head = attempt_.head();
  OutBuffer* const out =
      SwitchesTo(head, text_.protocol) ? client_->BeginInterim(101, head.reason) : nullptr;
  if (out == nullptr) {
    return Fail(AttemptFailure::kBadAnswer, "unexpected 101 (Switching Protocols)");
  }
  attempt_.CountResponse();
  attempt_.NoteResult(AttemptResult::kGood);
  status_ = 101;
  phase_ = Phase::kTunnel;
  (void)WriteAnswerHead(*out, head,
                        {.request_id = text_.request_id, .date = net::HttpDate(), .upgrade = true},
                        route_->spec.response_headers);
  WriteRateLimit(*out, 200, OtherRetryAfter::kNo);
  client_->EndInterim();
  attempt_.BeginTunnel();
  CopyText();
  client_->Switch();
  // Bytes that the client sent after its request are the first bytes of the new protocol.
  return PumpRequest() == Step::kOver ? Step::kOver : Step::kMore;
}

/// Called when the upstream has ended its half of the tunnel. Forwards this end to the client,
/// after all bytes that were read before it.
ProxiedExchange::Step ProxiedExchange::EndTunnel() {
  if (!client_->Flush()) return LoseClient();
  if (client_->blocked()) return Step::kWait;  // The next read finds the end of stream again.
  client_->EndSending();
  phase_ = Phase::kTunnelEnding;
  return AwaitTunnelEnd();
}

// --- A client that is gone ----------------------------------------------------

/// Called when the client's connection accepts no more.
ProxiedExchange::Step ProxiedExchange::LoseClient() {
  if (!OwesCost()) {
    End(ExchangeOutcome::kClientGone, Ending::kCut);
    return Step::kOver;
  }
  CopyText();
  ClientStream& client = *std::exchange(client_, nullptr);
  CountBytes(client);
  BeginDraining();
  client.Finish(Ending::kCut);
  Drain();
  return Step::kOver;
}

/// Reads the rest of a response whose client is gone, because the trailers contain the cost. The
/// bytes and the time are limited.
void ProxiedExchange::Drain() {
  constexpr std::uint64_t kMost = 1u << 20;
  UpstreamAttempt::Got got = UpstreamAttempt::Got::kData;
  while (body_bytes_ <= kMost && (got = attempt_.ReadBody()) == UpstreamAttempt::Got::kData) {
    body_bytes_ += attempt_.data().size();
    attempt_.TakeBody();
  }
  if (got == UpstreamAttempt::Got::kWait) {
    // The deadline is limits.body_timeout in total: input does not prolong it.
    if (wait_.phase != phase_ || !Deadlines::IsArmed(*this)) Arm(Deadlines::Kind::kBody);
    return;
  }
  if (got == UpstreamAttempt::Got::kEnd) quotas_.NoteCosts(attempt_.trailers());
  if (got == UpstreamAttempt::Got::kFailed) attempt_.SetProblem({});
  End(ExchangeOutcome::kClientGone, Ending::kCut);
}

// --- Deadlines ----------------------------------------------------------------

void ProxiedExchange::Arm(Deadlines::Kind kind) noexcept {
  wait_ = {kind, phase_, attempt_.connected() ? Moved() : 0};
  gateway_.reactor().deadlines().Arm(*this, kind, gateway_.reactor().now());
}

/// Arms the deadline of the event that the exchange waits for next.
void ProxiedExchange::ArmNext() {
  Micros wait = attempt_.spec().idle_timeout;
  std::optional<Deadlines::Kind> fixed;  // Set if a limit of the listener applies.
  switch (phase_) {
    case Phase::kSending:
      // Wait for the client's body, unless the upstream is blocked or has not sent 100 yet.
      if (client_->awaits_continue()) {
        wait = route_->response_timeout;
      } else if (!attempt_.blocked()) {
        fixed = Deadlines::Kind::kBody;
      }
      break;
    case Phase::kAwaiting: wait = route_->response_timeout; break;
    case Phase::kResponding:
      if (client_->blocked()) fixed = Deadlines::Kind::kWrite;
      break;
    case Phase::kTunnel:
    case Phase::kTunnelEnding: break;
    default: return;
  }
  const Deadlines::Kind kind = fixed ? *fixed : gateway_.reactor().deadlines().KindFor(wait);
  if (kind != wait_.kind || phase_ != wait_.phase || !Deadlines::IsArmed(*this)) Arm(kind);
}

void ProxiedExchange::OnDeadline(Deadlines::Kind kind) {
  const std::uint64_t moved = attempt_.connected() ? Moved() - wait_.mark : 0;
  const std::uint64_t min_progress = gateway_.options().min_progress;
  switch (phase_) {
    case Phase::kDraining: return End(ExchangeOutcome::kClientGone, Ending::kCut);
    case Phase::kConnecting:
      return (void)Fail(AttemptFailure::kConnectTimeout, "timeout while connecting");
    case Phase::kSending:
      if (kind == Deadlines::Kind::kBody) {
        if (moved >= min_progress) return Arm(kind);
        return (void)RefuseBody({408, "the body of the request arrives too slowly"});
      }
      if (moved > 0) return Arm(kind);
      if (client_->awaits_continue()) {
        // The client waits for 100, and the upstream for the body: neither is clearly at fault.
        return (void)Fail(AttemptFailure::kTimeout, "no 100 (Continue) in time", Blame::kUnknown);
      }
      return (void)Fail(AttemptFailure::kTimeout, "the upstream does not read the request");
    case Phase::kAwaiting: return (void)Fail(AttemptFailure::kTimeout, "no response in time");
    case Phase::kResponding: {
      const bool client = kind == Deadlines::Kind::kWrite;
      if (moved >= (client ? min_progress : 1)) return Arm(kind);
      attempt_.SetProblem(client ? "the client reads the response too slowly"
                                 : "the response stalled");
      return End(client ? ExchangeOutcome::kClientGone : ExchangeOutcome::kCut, Ending::kCut);
    }
    case Phase::kTunnel:
    case Phase::kTunnelEnding:
      if (moved > 0) return Arm(kind);
      attempt_.SetProblem("idle timeout: no byte in either direction");
      return End(ExchangeOutcome::kPassed, Ending::kComplete);
    default: return;
  }
}

}  // namespace tidegate

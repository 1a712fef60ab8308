// SPDX-License-Identifier: Apache-2.0
// Attempts of a passage to reach its upstream: the choice of a target, failures, and deadlines.
#include <algorithm>
#include <utility>

#include "gateway/gateway.hpp"
#include "gateway/passage.hpp"

namespace tidegate {
namespace {

using net::Channel;
using net::Deadlines;

struct Verdict {
  int status;
  PassageOutcome outcome;
  std::string_view detail;
};

/// Returns the response to the client. It does not reveal names or addresses behind the gateway.
Verdict VerdictOf(AttemptFailure failure) noexcept {
  switch (failure) {
    case AttemptFailure::kConnect:
      return {502, PassageOutcome::kConnectFailed, "cannot connect to the upstream"};
    case AttemptFailure::kConnectTimeout:
      return {504, PassageOutcome::kConnectFailed, "timeout while connecting to the upstream"};
    case AttemptFailure::kTimeout:
      return {504, PassageOutcome::kTimeout, "the upstream did not respond in time"};
    case AttemptFailure::kReset:
      return {502, PassageOutcome::kUpstreamError, "the upstream closed the connection"};
    default:
      return {502, PassageOutcome::kUpstreamError, "malformed response from the upstream"};
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
      return std::nullopt;  // The response itself is valid.
    default:
      return GatewayCounters::kBadAnswers;
  }
}

}  // namespace

void Passage::Attempt() {
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = decision_->snapshot().routes->upstream_slot(route_->upstream);
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
  parser_ = net::ResponseParser(pool_->upstream().line_end());
  response_.Reserve(decision_->snapshot().routes->gateway().response_header_count);
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
  upstream_ = nullptr;  // The pool has already taken it back.
  (void)FailAttempt(AttemptFailure::kConnect, problem);
}

/// Retries the request, or ends the passage. Always returns kOver.
Passage::Pumped Passage::FailAttempt(AttemptFailure failure, std::string_view problem,
                                     Blame blame) {
  problem_ = problem;
  GatewayCounters& counters = gateway_.counters();
  const std::uint32_t slot = decision_->snapshot().routes->upstream_slot(route_->upstream);
  if (const auto column = ColumnOf(failure)) counters.upstreams.Add(slot, *column);
  // Either side may end a tunnel, so its end is not a failure of the target.
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
  // A response of which no byte has been sent can still be replaced by an error. The request is not
  // retried then, because that response has been counted already.
  const bool retracted = answer_begun_ && client_->Retract();
  if (retracted) costs_ = {};
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

/// Arms the deadline of the event that the passage waits for next.
void Passage::Settle() {
  Micros wait = pool_->upstream().spec().idle_timeout;
  std::optional<Deadlines::Kind> fixed;  // Set if a limit of the listener applies.
  switch (phase_) {
    case Phase::kSending:
      // Wait for the client's body, unless the upstream is blocked or has not sent 100 yet.
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
    (void)FailAttempt(AttemptFailure::kConnectTimeout, "timeout while connecting");
    return;
  }
  const std::uint64_t moved = Moved() - mark_;
  switch (phase_) {
    case Phase::kSending:
      if (kind == Deadlines::Kind::kBody) {
        if (moved >= gateway_.options().min_progress) return Arm(kind);
        (void)RefuseBody({408, "the body of the request arrives too slowly"});
        return;
      }
      if (moved > 0) return Arm(kind);
      if (client_->awaits_continue()) {
        // The client waits for 100, and the upstream for the body: neither is clearly at fault.
        (void)FailAttempt(AttemptFailure::kTimeout, "no 100 (Continue) in time", Blame::kNobody);
        return;
      }
      (void)FailAttempt(AttemptFailure::kTimeout, "the upstream does not read the request");
      return;
    case Phase::kAwaiting:
      (void)FailAttempt(AttemptFailure::kTimeout, "no response in time");
      return;
    case Phase::kAnswering:
      if (moved >= (kind == Deadlines::Kind::kWrite ? gateway_.options().min_progress : 1)) {
        return Arm(kind);
      }
      problem_ = kind == Deadlines::Kind::kWrite ? "the client reads the response too slowly"
                                                 : "the response stalled";
      return End(
          kind == Deadlines::Kind::kWrite ? PassageOutcome::kClientGone : PassageOutcome::kCut,
          ClientStream::Ending::kCut);
    case Phase::kTunnel:
      if (moved > 0) return Arm(kind);
      problem_ = "idle timeout: no byte in either direction";
      return End(PassageOutcome::kPassed, ClientStream::Ending::kComplete);
    default:
      return;
  }
}

}  // namespace tidegate

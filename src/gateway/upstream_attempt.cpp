// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_attempt.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "gateway/fields.hpp"
#include "gateway/gateway.hpp"

namespace tidegate {
namespace {

using net::Channel;
using net::Parsed;

/// A limit for the interim responses (1xx) of one request.
constexpr int kMaxInterims = 16;

/// The counters of failures, indexed by AttemptFailure; none for kStatus: the response is valid.
constexpr std::array<std::optional<GatewayCounters::Column>, kAttemptFailures> kFailureColumns = {
    GatewayCounters::kConnectFailures, GatewayCounters::kConnectFailures, GatewayCounters::kResets,
    GatewayCounters::kTimeouts,        GatewayCounters::kBadAnswers,      std::nullopt};

}  // namespace

void UpstreamAttempt::Count(std::size_t column) noexcept {
  gateway_.counters().upstreams.Add(slot_, column);
}

UpstreamAttempt::Begun UpstreamAttempt::Begin(TriedTargets& tried, Clock::time_point now) {
  auto choice = pool_->Choose(tried.remembered());
  if (choice.member == nullptr) {
    const bool full = choice.lack == Balancer::Lack::kFull;
    Count(full ? GatewayCounters::kFull : GatewayCounters::kDown);
    return full ? Begun::kFull : Begun::kDown;
  }
  member_ = std::move(choice.member);
  tried.Add(*member_);
  Count(GatewayCounters::kAttempts);
  state_ = State::kConnecting;
  reading_ = Reading::kHead;
  interims_ = 0;
  parser_ = net::ResponseParser(pool_->upstream().line_end());
  head_.Reserve(limits_.header_count);
  bool ours = false;
  connection_ = pool_->Lend(member_, exchange_, now, problem_, ours);
  if (connection_ == nullptr) {
    failure_ = AttemptFailure::kConnect;
    blame_ = ours ? Blame::kUnknown : Blame::kTarget;
    return Begun::kFailed;
  }
  return connection_->up() ? Begun::kUp : Begun::kConnecting;
}

void UpstreamAttempt::Yield() { gateway_.reactor().Again(*connection_); }

// --- The request --------------------------------------------------------------

net::OutBuffer& UpstreamAttempt::BeginRequest(Clock::time_point earliest) {
  sent_before_ = sent_bytes();
  sent_at_ = std::max(gateway_.reactor().now(), earliest);
  state_ = State::kSending;
  return out();
}

// --- The response -------------------------------------------------------------

UpstreamAttempt::Got UpstreamAttempt::Fill() {
  Channel& channel = connection_->channel();
  switch (channel.Fill()) {
    case Channel::Got::kBytes: return Got::kData;
    case Channel::Got::kNothing: return Got::kWait;
    case Channel::Got::kFull:
      if (reading_ == Reading::kHead ? channel.Grow(limits_.header_bytes) : channel.Compact()) {
        return Got::kData;
      }
      return Fail(AttemptFailure::kBadAnswer,
                  "response head is longer than gateway.response_header_bytes");
    case Channel::Got::kEnd:
      if (reading_ == Reading::kHead) {
        return Fail(AttemptFailure::kReset, "connection closed without a response");
      }
      if (body_.EndsAtClose()) return Got::kEnd;
      return Fail(AttemptFailure::kReset, "connection closed during the response");
    case Channel::Got::kBroken: break;
  }
  return Fail(AttemptFailure::kReset, "connection reset");
}

UpstreamAttempt::Got UpstreamAttempt::ReadHead(net::AnswerTo to) {
  Channel& channel = connection_->channel();
  Parsed parsed = Parsed::kMore;
  while (true) {
    if (!channel.input().empty()) parsed = parser_.Parse(channel.input(), limits_, to, head_);
    if (parsed != Parsed::kMore) break;
    if (const Got got = Fill(); got != Got::kData) return got;
  }
  if (parsed == Parsed::kRefused) return Fail(AttemptFailure::kBadAnswer, parser_.reason());
  if (head_.status == 101) return Got::kData;
  if (head_.status < 200) {
    if (++interims_ <= kMaxInterims) return Got::kData;
    return Fail(AttemptFailure::kBadAnswer, "too many interim responses");
  }
  if (Nominated::By(head_).too_many()) {
    return Fail(AttemptFailure::kBadAnswer, "the Connection header names too many header fields");
  }
  return Got::kData;
}

void UpstreamAttempt::CountResponse() noexcept {
  // The beginning of the round, in which the head arrived, is as good as the current time.
  const auto took = std::max(gateway_.reactor().now() - sent_at_, Clock::duration{0});
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  gateway_.counters().upstreams.Add(slot_, GatewayCounters::kMicros,
                                    static_cast<std::uint64_t>(micros));
  std::size_t bucket = 0;
  while (bucket < GatewayCounters::kMillis.size() &&
         micros > GatewayCounters::kMillis[bucket] * 1000) {
    ++bucket;
  }
  Count(GatewayCounters::kBuckets + bucket);
}

void UpstreamAttempt::NoteResult(AttemptResult result) {
  if (NoteAttempt(*member_, result, spec().ejection, pool_->members(), gateway_.reactor().now())) {
    Count(GatewayCounters::kEjections);
  }
}

UpstreamAttempt::Got UpstreamAttempt::ReadBody() {
  Channel& channel = connection_->channel();
  while (true) {
    const Parsed parsed = body_.Read(channel.raw());
    if (parsed == Parsed::kRefused) {
      return Fail(AttemptFailure::kBadAnswer, body_.refusal().reason);
    }
    if (parsed == Parsed::kDone) return Got::kEnd;
    if (!body_.data().empty()) return Got::kData;
    TakeBody();
    if (const Got got = Fill(); got != Got::kData) return got;
  }
}

bool UpstreamAttempt::Abandon() {
  if (const auto column = kFailureColumns[static_cast<std::size_t>(failure_)]) Count(*column);
  // Either side may end a tunnel, so its end is not a failure of the target.
  if (blame_ == Blame::kTarget && reading_ != Reading::kTunnel) NoteResult(AttemptResult::kBad);
  const bool nothing_sent =
      connection_ == nullptr || state_ == State::kConnecting || sent_bytes() == sent_before_;
  Release(Reuse::kNo);
  return nothing_sent;
}

void UpstreamAttempt::CountRetry() noexcept { Count(GatewayCounters::kRetries); }

void UpstreamAttempt::Release(Reuse reuse) {
  if (UpstreamConnection* const connection = std::exchange(connection_, nullptr)) {
    reuse == Reuse::kYes ? pool_->Return(*connection) : pool_->Discard(*connection);
  }
  if (std::exchange(state_, State::kIdle) != State::kIdle) UpstreamPool::Done(*member_);
}

}  // namespace tidegate

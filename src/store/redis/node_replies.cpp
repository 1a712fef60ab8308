// SPDX-License-Identifier: Apache-2.0
// Replies of Redis and failures: what they mean for the batches that were sent.
#include "store/redis/node.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/client.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis {

using Notice = Client::Listener::Notice;

void Node::OnLinkPush(const Reply& push) {
  // `message`, the channel, the key.
  if (push.elements.size() == 3 && push.elements[0].text == "message") {
    client_.listener_.OnInvalidated(push.elements[2].text);
  }
}

void Node::OnLinkReply(const Reply& reply) {
  if (sent_.empty()) {
    return link_.Fail(ErrorKind::kOther, link_.Shown() + " sent an unexpected reply");
  }
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent.batch == nullptr) {
    if (sent.done) sent.done(&reply);
    return;
  }
  const bool ends_round = sent.ends_round;
  const auto now = Clock::now();
  stall_at_ = now + client_.options_.deadline;
  client_.stats_.latency.Add(static_cast<std::uint64_t>((now - sent.at).count()));
  usual_latency_ += (now - sent.at - usual_latency_) / 8;
  // The round that it ends makes room first: what is sent because of this reply may need it.
  if (ends_round) --under_way_;
  if (reply.is(Reply::Type::kError)) {
    OnBatchError(std::move(sent), reply.text);
  } else {
    OnBatchReply(std::move(sent), reply);
  }
  if (ends_round) EndRound();
  SendWhatMay();
}

void Node::EndRound() {
  const Health health = std::exchange(health_, Health::kUnknown);
  if (!link_.up()) return;
  if (health == Health::kGood) breaker_.OnSuccess();
  if (health == Health::kBad) breaker_.OnFailure(Clock::now());
  NoteBreaker();
  if (health == Health::kBad && breaker_.state() == Breaker::State::kOpen)
    FailQueued(Reason::kBreakerOpen);
}

void Node::OnBatchReply(Sent sent, const Reply& reply) {
  Batch& batch = *sent.batch;
  const bool late = batch.empty();
  if (late) client_.stats_.late.Add();
  Batch::Summary summary{Batch::Summary::Verdict::kBadTypes};
  if (reply.is(Reply::Type::kText)) {
    std::uint64_t answered = 0;
    reading_ = true;
    summary = batch.Read(
        reply.text,
        [&](Call& call) {
          client_.stats_.calls.Add();
          ++answered;
          client_.OnAnswered(call, sent.at, subscribed_);
        },
        [&](std::string_view key) { client_.listener_.OnInvalidated(key); });
    reading_ = false;
    client_.stats_.batch_calls.Add(answered);
  }
  if (summary.verdict == Batch::Summary::Verdict::kGood) {
    // A reply after all deadlines shows a Redis that is too slow, not one that is well.
    Note(late ? Health::kBad : Health::kGood);
    client_.stats_.healed.Add(static_cast<std::uint64_t>(summary.healed));
    client_.stats_.repaired.Add(static_cast<std::uint64_t>(summary.repaired));
    client_.stats_.failed_writes.Add(static_cast<std::uint64_t>(summary.failed_writes));
    const std::pair<std::int64_t, Notice> notices[] = {
        {summary.healed, Notice::kHealed}, {summary.failed_writes, Notice::kFailedWrites}};
    for (const auto& [count, notice] : notices) {
      if (count > 0) client_.listener_.OnNotice(notice, ErrorKind::kOther, endpoint().Shown(), {});
    }
    return client_.batches_.Give(std::move(sent.batch));
  }
  const bool types = summary.verdict == Batch::Summary::Verdict::kBadTypes;
  Fail(std::move(sent.batch), types ? Reason::kBadTypes : Reason::kBadResponse, Executed::kUnknown);
  // Whatever it was that came, the next reply may be the rest of it.
  link_.Fail(ErrorKind::kOther, link_.Shown() + " sent a reply that does not match its batch");
}

void Node::OnBatchError(Sent sent, std::string_view error) {
  const ErrorKind kind = KindOf(error);
  client_.stats_.errors[static_cast<std::size_t>(kind)].Add();
  const std::string text(error);  // The reply's memory goes with the connection.
  const Remedy remedy = RemedyOf(kind);
  // What a half-open breaker let through is a probe: its first answer decides.
  const bool probe = breaker_.state() != Breaker::State::kClosed;
  std::unique_ptr<Batch> batch = std::move(sent.batch);
  if (remedy == Remedy::kElsewhere) {
    // The node is well; it is the slot that is not here.
    Note(Health::kGood);
    if (batch->empty()) return client_.batches_.Give(std::move(batch));
    return client_.OnElsewhere(*this, std::move(batch), kind, text);
  }
  if (batch->empty()) {
    // No call waits for a second try; and a probe must be answered in one way or the other.
    if (remedy != Remedy::kSendText || probe) Note(Health::kBad);
    return client_.batches_.Give(std::move(batch));
  }
  if (remedy == Remedy::kSendText && batch->attempts() < 3 + batch->hops) {
    // Loaded once for all that were sent meanwhile; what follows on this connection finds it,
    // unless it is lost again. (What came by EVAL may be evicted, what was loaded not.)
    const bool again = batch->attempts() > 1 + batch->hops + batch->delays;
    if (!loading_) {
      loading_ = true;
      AppendCommand(link_.out(), {"SCRIPT", "LOAD", ApplyScript()});
      sent_.push_back({nullptr, [this](const Reply*) { loading_ = false; }, Clock::now()});
    }
    Write(std::move(batch), again ? Batch::Form::kText : Batch::Form::kSha, true);
    Arm();
    return link_.Flush();
  }
  if (remedy == Remedy::kRetryOnce && batch->attempts() < 2 && !probe) {
    hold_until_ = Clock::now() + std::chrono::milliseconds{1} +
                  std::chrono::milliseconds{backoff_.Random() % 5};
    PutBack(std::move(batch));
    return Arm();
  }
  client_.listener_.OnNotice(Notice::kError, kind, endpoint().Shown(), text);
  Fail(std::move(batch), Reason::kRedisError, ExecutedDespite(kind));
  if (remedy == Remedy::kReconnect) return link_.Fail(kind, text);
  // Redis still answers what writes nothing or takes something away: denials and releases.
  if (!probe && RefusesWritesOnly(kind)) return;
  Note(Health::kBad);
}

// --- Failures -----------------------------------------------------------------------

void Node::Fail(std::unique_ptr<Batch> batch, Reason reason, Executed executed) {
  batch->TakeAll([&](Call& call) {
    call.not_executed = executed == Executed::kNo;
    client_.OnFailed(call, reason);
  });
  client_.batches_.Give(std::move(batch));
}

void Node::FailQueued(Reason reason) {
  auto queue = std::exchange(queue_, {});
  for (Round& round : queue) {
    for (auto& batch : round.batches()) {
      Fail(std::move(batch), reason, Executed::kNo);
    }
  }
}

void Node::FailEverything(Reason reason) {
  auto sent = std::exchange(sent_, {});
  under_way_ = 0;
  health_ = Health::kUnknown;
  for (Sent& each : sent) {
    if (each.batch == nullptr) {
      if (each.done) each.done(nullptr);
      continue;
    }
    Fail(std::move(each.batch), reason, Executed::kUnknown);
  }
  FailQueued(reason);
}

}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
#include "store/redis/node.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/scripts.hpp"
#include "store/redis/seed.hpp"

namespace tidegate::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDead{1000};
constexpr std::size_t kMostUnderWay = 2;

}  // namespace

Node::Node(net::Reactor& reactor, const Options& options, BatchPool& batches, ClientStats& stats,
           Listener& listener)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      options_(options),
      batches_(batches),
      stats_(stats),
      listener_(listener),
      link_(reactor, options.link, *this),
      backoff_(Seed()),
      breaker_(Seed()),
      used_at_(Clock::now()) {}

Node::~Node() = default;

void Node::Start() {
  stopped_ = false;
  link_.Open();
}

void Node::Stop() {
  stopped_ = true;
  told_ = false;
  link_.Close();
  net::Timer::Disarm();
  FailEverything(Reason::kRedisError);
}

void Node::StopFor(Node& other) {
  auto queue = std::exchange(queue_, {});
  for (Round& round : queue) {
    for (auto& batch : round.batches()) other.Take(std::move(batch));
  }
  Stop();
}

// --- Calls coming in ------------------------------------------------------------

bool Node::Accepts(Clock::time_point now) noexcept {
  if (stopped_) return false;
  if (breaker_.state() == Breaker::State::kClosed) return true;
  // What is under way decides first: a probe, or one that Redis is late with.
  return under_way_ == 0 && link_.up() && breaker_.Allows(now);
}

bool Node::Take(Call& call, Slot slot, bool single, Reason& reason) {
  used_at_ = Clock::now();
  if (!Accepts(used_at_)) {
    reason = Reason::kBreakerOpen;
    return false;
  }
  if (WouldBeTooLate()) {
    reason = Reason::kQueueFull;
    return false;
  }
  Place(call, slot, single);
  // Not at once: what else comes in this round goes with it.
  if (MaySend() && !reading_) reactor_.Again(*this);
  return true;
}

void Node::Take(std::unique_ptr<Batch> batch) {
  used_at_ = Clock::now();
  if (!Accepts(used_at_)) {
    FailAll(*batch, Reason::kBreakerOpen, Executed::kNo);
    return batches_.Give(std::move(batch));
  }
  PutBack(std::move(batch));
  if (!reading_) reactor_.Again(*this);
}

bool Node::WouldBeTooLate() const noexcept {
  if (queue_.size() < 2) return false;
  // All that wait before it take their turn first. Without this, everybody would be sent with
  // hardly any time left, be charged, and be told that it failed.
  const auto turns = static_cast<std::int64_t>(queue_.size() + under_way_);
  return usual_latency_ * turns > options_.deadline * 3 / 4;
}

void Node::Place(Call& call, Slot slot, bool single) {
  if (!queue_.empty() && !queue_.back().again()) {
    Round& open = queue_.back();
    if (Batch* const batch = open.Find(call, slot, single)) {
      const std::size_t before = batch->entries();
      if (batch->Add(call)) return open.Grow(batch->entries() - before);
    } else if (!open.full()) {
      auto added = batches_.New(slot, single);
      (void)added->Add(call);  // One call always fits.
      open.Grow(added->entries());
      return open.Add(std::move(added), call);
    }
  }
  auto batch = batches_.New(slot, single);
  (void)batch->Add(call);
  Round& round = queue_.emplace_back();
  round.Grow(batch->entries());
  round.Add(std::move(batch), call);
}

void Node::PutBack(std::unique_ptr<Batch> batch) {
  if (queue_.empty() || !queue_.front().again()) queue_.emplace_front();
  queue_.front().AddAgain(std::move(batch));
}

// --- Rounds going out ------------------------------------------------------------

void Node::OnReady(std::uint32_t) { SendWhatMay(); }

bool Node::MaySend() const noexcept {
  if (under_way_ == 0) return true;
  return under_way_ < kMostUnderWay && (queue_.size() > 1 || queue_.back().full());
}

void Node::SendWhatMay() {
  if (reading_) return;
  while (!queue_.empty()) {
    // Whether connected or not: those that nobody waits in any more must not pile up.
    auto& batches = queue_.front().batches();
    if (std::ranges::all_of(batches, [](const auto& batch) { return batch->empty(); })) {
      for (auto& batch : batches) batches_.Give(std::move(batch));
      queue_.pop_front();
      continue;
    }
    if (!link_.up() || !MaySend()) return;
    const auto now = Clock::now();
    if (hold_until_ > now) return;
    if (breaker_.state() != Breaker::State::kClosed) {
      if (under_way_ > 0 || !breaker_.Allows(now)) return;
      breaker_.OnSent();
    }
    Round round = std::move(queue_.front());
    queue_.pop_front();
    // Not before: a round that still takes calls knows its batches by number.
    for (auto& batch : round.batches()) {
      if (batch->empty()) batches_.Give(std::move(batch));
    }
    std::erase(round.batches(), nullptr);
    SendRound(round);
  }
}

void Node::SendRound(Round& round) {
  auto& batches = round.batches();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Write(std::move(batches[i]), Batch::Form::kSha, i + 1 == batches.size());
  }
  Arm();
  link_.Flush();
}

void Node::Write(std::unique_ptr<Batch> batch, Batch::Form form, bool ends_round) {
  const auto now = Clock::now();
  if (batch->asking) {
    AppendCommand(link_.out(), {"ASKING"});
    sent_.push_back({nullptr, nullptr, now});
  }
  const bool by_sha = form == Batch::Form::kSha;
  batch->Write(link_.out(), form, by_sha ? sha_ : ApplyScript(), options_.channel);
  stats_.batches.Add();
  stats_.entries.Add(batch->entries());
  stats_.keys.Add(batch->keys());
  if (ends_round && under_way_++ == 0) stall_at_ = now + options_.deadline;
  sent_.push_back({std::move(batch), nullptr, now, ends_round});
}

void Node::Run(std::string_view command, Done done) {
  if (!link_.up()) {
    if (done) done(nullptr);
    return;
  }
  link_.out().append(command);
  sent_.push_back({nullptr, std::move(done), Clock::now()});
  Arm();
  link_.Flush();
}

// --- Replies ----------------------------------------------------------------------

void Node::OnLinkPush(const Reply& push) {
  // `message`, the channel, the key.
  if (push.elements.size() == 3 && push.elements[0].text == "message") {
    listener_.OnInvalidated(push.elements[2].text);
  }
}

void Node::OnLinkReply(const Reply& reply) {
  if (sent_.empty()) {
    return link_.Fail(ErrorKind::kOther, link_.Shown() + " sent a reply that nobody had asked for");
  }
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent.batch == nullptr) {
    if (sent.done) sent.done(&reply);
    return;
  }
  const bool ends_round = sent.ends_round;
  const auto now = Clock::now();
  stall_at_ = now + options_.deadline;
  stats_.latency.Add(now - sent.at);
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

void Node::Note(Health health) noexcept {
  // One good reply shows that the node is well, whatever the others say.
  if (health_ != Health::kGood) health_ = health;
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
  if (late) stats_.late.Add();
  Batch::Summary summary{Batch::Summary::Verdict::kBadTypes};
  if (reply.is(Reply::Type::kText)) {
    std::uint64_t answered = 0;
    reading_ = true;
    summary = batch.Read(
        reply.text,
        [&](Call& call) {
          stats_.calls.Add();
          ++answered;
          listener_.OnAnswered(call, sent.at, told_);
        },
        [&](std::string_view key) { listener_.OnInvalidated(key); });
    reading_ = false;
    stats_.batch_calls.Add(answered);
  }
  if (summary.verdict == Batch::Summary::Verdict::kGood) {
    // One that nobody waited for any more shows a Redis that is too slow, not one that is well.
    Note(late ? Health::kBad : Health::kGood);
    stats_.healed.Add(static_cast<std::uint64_t>(summary.healed));
    stats_.repaired.Add(static_cast<std::uint64_t>(summary.repaired));
    stats_.failed_writes.Add(static_cast<std::uint64_t>(summary.failed_writes));
    if (summary.healed > 0 || summary.failed_writes > 0) {
      listener_.OnHealed(*this, summary.healed, summary.failed_writes);
    }
    return batches_.Give(std::move(sent.batch));
  }
  const bool types = summary.verdict == Batch::Summary::Verdict::kBadTypes;
  FailAll(batch, types ? Reason::kBadTypes : Reason::kBadResponse, Executed::kUnknown);
  // Whatever it was that came, the next reply may be the rest of it.
  link_.Fail(ErrorKind::kOther,
             link_.Shown() + " sent a reply that does not fit what it was asked");
}

void Node::OnBatchError(Sent sent, std::string_view error) {
  const ErrorKind kind = KindOf(error);
  stats_.errors[static_cast<std::size_t>(kind)].Add();
  const std::string text(error);  // The reply's memory goes with the connection.
  const Remedy remedy = RemedyOf(kind);
  // What a half-open breaker let through is a probe: its first answer decides.
  const bool probe = breaker_.state() != Breaker::State::kClosed;
  std::unique_ptr<Batch> batch = std::move(sent.batch);
  if (remedy == Remedy::kElsewhere) {
    // The node is well; it is the slot that is not here.
    Note(Health::kGood);
    if (batch->empty()) return batches_.Give(std::move(batch));
    return listener_.OnElsewhere(*this, std::move(batch), kind, text);
  }
  if (batch->empty()) {
    // Nobody waits for a second try; and a probe must be answered in one way or the other.
    if (remedy != Remedy::kSendText || probe) Note(Health::kBad);
    return batches_.Give(std::move(batch));
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
    hold_until_ = Clock::now() + milliseconds{1} + milliseconds{backoff_.Random() % 5};
    PutBack(std::move(batch));
    return Arm();
  }
  listener_.OnRefused(*this, kind, text);
  FailAll(*batch, Reason::kRedisError, ExecutedDespite(kind));
  batches_.Give(std::move(batch));
  if (remedy == Remedy::kReconnect) return link_.Fail(kind, text);
  // Redis still answers what writes nothing or takes something away: denials and releases.
  if (!probe && RefusesWritesOnly(kind)) return;
  Note(Health::kBad);
}

// --- Failures -----------------------------------------------------------------------

void Node::FailAll(Batch& batch, Reason reason, Executed executed) {
  batch.TakeAll([&](Call& call) {
    call.not_executed = executed == Executed::kNo;
    listener_.OnFailed(call, reason);
  });
}

void Node::FailQueued(Reason reason) {
  auto queue = std::exchange(queue_, {});
  for (Round& round : queue) {
    for (auto& batch : round.batches()) {
      FailAll(*batch, reason, Executed::kNo);
      batches_.Give(std::move(batch));
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
    FailAll(*each.batch, reason, Executed::kUnknown);
    batches_.Give(std::move(each.batch));
  }
  FailQueued(reason);
}

void Node::WatchStall(Clock::time_point now) {
  if (sent_.empty()) return;
  if (now - sent_.front().at >= Patience()) {
    return link_.Fail(ErrorKind::kOther,
                      link_.Shown() + " has not answered for a second; the connection was dropped");
  }
  if (under_way_ == 0 || now < stall_at_) return;
  stall_at_ = now + options_.deadline;
  breaker_.OnFailure(now);
  NoteBreaker();
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
}

void Node::NoteBreaker() {
  if (std::exchange(noted_, breaker_.state()) != breaker_.state()) listener_.OnBreaker(*this);
}

Node::Clock::duration Node::Patience() const noexcept {
  return std::max<Clock::duration>(kDead, options_.deadline);
}

void Node::OnTimer(net::Timer::Clock::time_point now) {
  if (stopped_) return;
  WatchStall(now);
  if (!stopped_ && link_.closed() && now >= reconnect_at_) link_.Open();
  SendWhatMay();
  Arm();
}

void Node::Arm() {
  if (stopped_) return;
  auto due = Clock::time_point::max();
  if (under_way_ > 0) due = std::min(due, stall_at_);
  if (!sent_.empty()) due = std::min(due, sent_.front().at + Patience());
  if (link_.closed()) due = std::min(due, reconnect_at_);
  if (!queue_.empty() && hold_until_ > Clock::now()) due = std::min(due, hold_until_);
  if (due != Clock::time_point::max()) ArmAt(due);
}

// --- The connection --------------------------------------------------------------------

void Node::OnLinkUp(const Greeting& greeting) {
  sha_ = greeting.sha();
  told_ = greeting.subscribed();
  up_since_ = Clock::now();
  stats_.connections.Add();
  breaker_.OnLinkUp();
  noted_ = breaker_.state();
  listener_.OnNodeUp(*this);
  SendWhatMay();
}

void Node::OnLinkDown(ErrorKind kind, const std::string& problem) {
  const auto now = Clock::now();
  told_ = false;
  if (kind != ErrorKind::kOther) stats_.errors[static_cast<std::size_t>(kind)].Add();
  breaker_.OnLinkDown(now);
  noted_ = breaker_.state();
  // One that has held for a while is a new start; one that breaks at once is not.
  if (up_since_ != Clock::time_point{} && now - up_since_ > kDead) backoff_.Reset();
  up_since_ = {};
  reconnect_at_ = now + backoff_.Next();
  hold_until_ = {};
  listener_.OnNodeDown(*this, kind, problem);
  if (stopped_) return;
  FailEverything(Reason::kRedisError);
  Arm();
}

}  // namespace tidegate::redis

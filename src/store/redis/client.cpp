// SPDX-License-Identifier: Apache-2.0
#include "store/redis/client.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "store/redis/scripts.hpp"

namespace tidegate::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kDead{1000};
constexpr std::size_t kMostUnderWay = 2;

std::uint64_t Seed() {
  std::random_device random;
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

std::int64_t Nanoseconds(Client::Clock::time_point at) noexcept {
  return nanoseconds{at.time_since_epoch()}.count();
}
Client::Clock::time_point At(std::int64_t since) noexcept {
  return Client::Clock::time_point{nanoseconds{since}};
}

}  // namespace

Client::Client(net::Reactor& reactor, const Options& options, const Fingerprinter& fingerprinter,
               Listener& listener)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      options_(options),
      fingerprinter_(fingerprinter),
      listener_(listener),
      names_(options.prefix),
      channel_(names_.Channel()),
      link_(reactor,
            {.url = options.url,
             .greeting = {.user = options.url.user,
                          .password = options.url.password,
                          .name = options.name,
                          .database = options.url.database,
                          .channel = channel_,
                          .script = ApplyScript()},
             .connect_timeout = options.connect_timeout},
            *this),
      backoff_(Seed()),
      breaker_(Seed()) {}

Client::~Client() = default;

void Client::Start() {
  stopped_ = false;
  link_.Open();
}

void Client::Stop() {
  stopped_ = true;
  link_.Close();
  net::Timer::Disarm();
  FailEverything(Reason::kRedisError);
  NoteState();
}

// --- Calls coming in ------------------------------------------------------------

bool Client::Accepts(Clock::time_point now) noexcept {
  if (stopped_) return false;
  if (breaker_.state() == Breaker::State::kClosed) return true;
  // What is under way decides first: a probe, or one that Redis is late with.
  return batches_under_way_ == 0 && link_.up() && breaker_.Allows(now);
}

void Client::Submit(Call& call) {
  const auto now = Clock::now();
  if (!Accepts(now)) {
    return listener_.OnFailed(call, Reason::kBreakerOpen);
  }
  if (waiting_ >= options_.most_waiting || WouldBeTooLate()) {
    return listener_.OnFailed(call, Reason::kQueueFull);
  }
  Enqueue(call, now);
}

bool Client::WouldBeTooLate() const noexcept {
  if (queue_.size() < 2) return false;
  // All that wait before it take their turn first. Without this, everybody would be sent with
  // hardly any time left, be charged, and be told that it failed.
  const auto turns = static_cast<std::int64_t>(queue_.size() + batches_under_way_);
  return usual_latency_ * turns > options_.deadline * 3 / 4;
}

void Client::Enqueue(Call& call, Clock::time_point now) {
  if (queue_.empty() || !queue_.back()->Add(call)) {
    queue_.push_back(NewBatch());
    (void)queue_.back()->Add(call);  // One call always fits.
  }
  call.record.since = Nanoseconds(now);
  call.record.earlier = last_;
  call.record.later = nullptr;
  (last_ == nullptr ? first_ : last_->record.later) = &call;
  last_ = &call;
  ++waiting_;
  stats_.waiting.Set(waiting_);
  if (first_ == &call) Arm();
  // Not at once: what else comes in this round goes with it.
  const bool may_leave = batches_under_way_ == 0 || (batches_under_way_ < kMostUnderWay &&
                                                     (queue_.size() > 1 || queue_.back()->full()));
  if (may_leave && !reading_) reactor_.Again(*this);
}

void Client::Unlink(Call& call) noexcept {
  CallRecord& record = call.record;
  (record.earlier == nullptr ? first_ : record.earlier->record.later) = record.later;
  (record.later == nullptr ? last_ : record.later->record.earlier) = record.earlier;
  --waiting_;
  stats_.waiting.Set(waiting_);
}

std::unique_ptr<Batch> Client::NewBatch() {
  if (spare_.empty()) return std::make_unique<Batch>(names_, fingerprinter_);
  auto batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

void Client::Recycle(std::unique_ptr<Batch> batch) {
  if (spare_.size() >= 4) return;
  batch->Clear();
  spare_.push_back(std::move(batch));
}

// --- Batches going out ------------------------------------------------------------

void Client::OnReady(std::uint32_t) { SendWhatMay(); }

void Client::SendWhatMay() {
  if (reading_) return;
  while (!queue_.empty()) {
    // Whether connected or not: those that nobody waits in any more must not pile up.
    if (queue_.front()->empty()) {
      Recycle(std::move(queue_.front()));
      queue_.pop_front();
      continue;
    }
    if (!link_.up()) return;
    if (batches_under_way_ >= kMostUnderWay) return;
    const bool more_wait = queue_.size() > 1 || queue_.front()->full();
    if (batches_under_way_ > 0 && !more_wait) return;
    const auto now = Clock::now();
    if (hold_until_ > now) return;
    if (breaker_.state() != Breaker::State::kClosed) {
      if (batches_under_way_ > 0 || !breaker_.Allows(now)) return;
      breaker_.OnSent();
    }
    auto batch = std::move(queue_.front());
    queue_.pop_front();
    Send(std::move(batch), Batch::Form::kSha);
  }
}

void Client::Send(std::unique_ptr<Batch> batch, Batch::Form form) {
  batch->Write(link_.out(), form, form == Batch::Form::kSha ? sha_ : ApplyScript(), channel_);
  stats_.batches.Add();
  stats_.entries.Add(batch->entries());
  stats_.keys.Add(batch->keys());
  const auto now = Clock::now();
  if (batches_under_way_++ == 0) {
    stall_at_ = now + options_.deadline;
  }
  sent_.push_back({std::move(batch), nullptr, now});
  Arm();
  link_.Flush();
  NoteState();
}

void Client::Run(std::string_view command, Done done) {
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

void Client::OnLinkPush(const Reply& push) {
  // `message`, the channel, the key.
  if (push.elements.size() == 3 && push.elements[0].text == "message") {
    listener_.OnInvalidated(push.elements[2].text);
  }
}

void Client::OnLinkReply(const Reply& reply) {
  if (sent_.empty()) {
    return link_.Fail(ErrorKind::kOther, "Redis sent a reply that nobody had asked for");
  }
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  if (sent.batch == nullptr) {
    if (sent.done) sent.done(&reply);
    return;
  }
  --batches_under_way_;
  const auto took = Clock::now() - sent.at;
  stall_at_ = Clock::now() + options_.deadline;
  stats_.latency.Add(took);
  usual_latency_ += (took - usual_latency_) / 8;
  if (reply.is(Reply::Type::kError)) {
    OnBatchError(std::move(sent), reply.text);
  } else {
    OnBatchReply(std::move(sent), reply);
  }
  SendWhatMay();
  NoteState();
}

void Client::OnBatchReply(Sent sent, const Reply& reply) {
  Batch& batch = *sent.batch;
  const bool late = batch.empty();
  if (late) stats_.late.Add();
  Batch::Summary summary{Batch::Summary::Verdict::kBadTypes};
  if (reply.is(Reply::Type::kText)) {
    reading_ = true;
    summary = batch.Read(
        reply.text,
        [&](Call& call) {
          Unlink(call);
          stats_.calls.Add();
          listener_.OnAnswered(call, sent.at);
        },
        [&](std::string_view key) { listener_.OnInvalidated(key); });
    reading_ = false;
  }
  if (summary.verdict == Batch::Summary::Verdict::kGood) {
    // One that nobody waited for any more shows a Redis that is too slow, not one that is well.
    if (late) {
      breaker_.OnFailure(Clock::now());
    } else {
      breaker_.OnSuccess();
    }
    stats_.healed.Add(static_cast<std::uint64_t>(summary.healed));
    stats_.repaired.Add(static_cast<std::uint64_t>(summary.repaired));
    stats_.failed_writes.Add(static_cast<std::uint64_t>(summary.failed_writes));
    using Notice = Listener::Notice;
    if (summary.healed > 0) listener_.OnNotice(Notice::kHealed, ErrorKind::kOther, {});
    if (summary.failed_writes > 0) {
      listener_.OnNotice(Notice::kFailedWrites, ErrorKind::kOther, {});
    }
    return Recycle(std::move(sent.batch));
  }
  const bool types = summary.verdict == Batch::Summary::Verdict::kBadTypes;
  FailAll(batch, types ? Reason::kBadTypes : Reason::kBadResponse);
  // Whatever it was that came, the next reply may be the rest of it.
  link_.Fail(ErrorKind::kOther, "Redis sent a reply that does not fit what it was asked");
}

void Client::OnBatchError(Sent sent, std::string_view error) {
  const ErrorKind kind = KindOf(error);
  stats_.errors[static_cast<std::size_t>(kind)].Add();
  const std::string text(error);  // The reply's memory goes with the connection.
  const Remedy remedy = RemedyOf(kind);
  // What a half-open breaker let through is a probe: its first answer decides.
  const bool probe = breaker_.state() != Breaker::State::kClosed;
  if (sent.batch->empty()) {
    // Nobody waits for a second try; and a probe must be answered in one way or the other.
    if (remedy != Remedy::kSendText || probe) breaker_.OnFailure(Clock::now());
    return Recycle(std::move(sent.batch));
  }
  if (remedy == Remedy::kSendText && sent.batch->attempts() < 3) {
    // What came by EVAL may be evicted again, what was loaded not.
    AppendCommand(link_.out(), {"SCRIPT", "LOAD", ApplyScript()});
    sent_.push_back({nullptr, nullptr, Clock::now()});
    return Send(std::move(sent.batch), Batch::Form::kText);
  }
  if (remedy == Remedy::kRetryOnce && sent.batch->attempts() < 2 && !probe) {
    hold_until_ = Clock::now() + milliseconds{1} + milliseconds{backoff_.Random() % 5};
    queue_.push_front(std::move(sent.batch));
    return Arm();
  }
  listener_.OnNotice(Listener::Notice::kError, kind, text);
  FailAll(*sent.batch, Reason::kRedisError);
  Recycle(std::move(sent.batch));
  if (remedy == Remedy::kReconnect) return link_.Fail(kind, text);
  // Redis still answers what writes nothing or takes something away: denials and releases.
  if (!probe && RefusesWritesOnly(kind)) return;
  breaker_.OnFailure(Clock::now());
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
}

// --- Failures -----------------------------------------------------------------------

void Client::FailAll(Batch& batch, Reason reason) {
  batch.TakeAll([&](Call& call) {
    Unlink(call);
    listener_.OnFailed(call, reason);
  });
}

void Client::FailQueued(Reason reason) {
  auto queue = std::exchange(queue_, {});
  for (auto& batch : queue) {
    FailAll(*batch, reason);
    Recycle(std::move(batch));
  }
}

void Client::FailEverything(Reason reason) {
  auto sent = std::exchange(sent_, {});
  batches_under_way_ = 0;
  for (Sent& each : sent) {
    if (each.batch == nullptr) {
      if (each.done) each.done(nullptr);
      continue;
    }
    FailAll(*each.batch, reason);
    Recycle(std::move(each.batch));
  }
  FailQueued(reason);
}

void Client::FailOverdue(Clock::time_point now) {
  while (first_ != nullptr && At(first_->record.since) + options_.deadline <= now) {
    Call& call = *first_;
    Batch& batch = *static_cast<Batch*>(call.record.batch);
    batch.Remove(call);
    Unlink(call);
    listener_.OnFailed(call, Reason::kTimeout);
  }
}

void Client::WatchStall(Clock::time_point now) {
  if (sent_.empty()) return;
  if (now - sent_.front().at >= Patience()) {
    return link_.Fail(ErrorKind::kOther,
                      "Redis has not answered for a second; the connection was dropped");
  }
  if (batches_under_way_ == 0 || now < stall_at_) return;
  stall_at_ = now + options_.deadline;
  breaker_.OnFailure(now);
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
}

Client::Clock::duration Client::Patience() const noexcept {
  return std::max<Clock::duration>(kDead, options_.deadline);
}

void Client::OnTimer(net::Timer::Clock::time_point now) {
  FailOverdue(now);
  WatchStall(now);
  if (!stopped_ && link_.closed() && now >= reconnect_at_) link_.Open();
  SendWhatMay();
  NoteState();
  Arm();
}

void Client::Arm() {
  if (stopped_) return;
  auto due = Clock::time_point::max();
  if (first_ != nullptr) due = At(first_->record.since) + options_.deadline;
  if (batches_under_way_ > 0) due = std::min(due, stall_at_);
  if (!sent_.empty()) due = std::min(due, sent_.front().at + Patience());
  if (link_.closed()) due = std::min(due, reconnect_at_);
  if (!queue_.empty() && hold_until_ > Clock::now()) due = std::min(due, hold_until_);
  if (due != Clock::time_point::max()) ArmAt(due);
}

// --- The connection --------------------------------------------------------------------

void Client::OnLinkUp(const Greeting& greeting) {
  sha_ = greeting.sha();
  problem_.clear();
  up_since_ = Clock::now();
  stats_.connections.Add();
  breaker_.OnLinkUp();
  listener_.OnSubscribed(greeting.subscribed());
  listener_.OnNotice(Listener::Notice::kUp, ErrorKind::kOther, {});
  NoteState();
  SendWhatMay();
}

void Client::OnLinkDown(ErrorKind kind, const std::string& problem) {
  const auto now = Clock::now();
  problem_ = problem;
  if (kind != ErrorKind::kOther) stats_.errors[static_cast<std::size_t>(kind)].Add();
  breaker_.OnLinkDown(now);
  // One that has held for a while is a new start; one that breaks at once is not.
  if (up_since_ != Clock::time_point{} && now - up_since_ > kDead) backoff_.Reset();
  up_since_ = {};
  reconnect_at_ = now + backoff_.Next();
  hold_until_ = {};
  NoteState();
  listener_.OnSubscribed(false);
  listener_.OnNotice(Listener::Notice::kDown, kind, problem);
  FailEverything(Reason::kRedisError);
  NoteState();
  Arm();
}

void Client::NoteState() noexcept {
  stats_.connected.Set(link_.up() ? 1 : 0);
  stats_.breaker.Set(static_cast<std::uint64_t>(breaker_.state()));
}

}  // namespace tidegate::redis

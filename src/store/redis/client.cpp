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

/// Without a reply for so long a connection is dead, whatever TCP thinks.
constexpr milliseconds kDead{1000};
constexpr std::size_t kMostUnderWay = 2;
constexpr std::size_t kMostOrphans = 4096;

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

/// A lease that somebody may hold in Redis without knowing it.
struct Client::Orphan : Call {
  Orphan(Client& of, const Charge& from)
      : client(of),
        rule(from.rule),
        identity(from.identity),
        lease_id(from.lease),
        own_quota(*from.quota) {
    own[0] = from;
    own[0].rule = rule;
    own[0].identity = identity;
    own[0].lease = lease_id;
    own[0].quota = &own_quota;
    kind = Kind::kRelease;
    charges = own;
    decisions = told;
    since = Clock::now();
    finished = [](Call& call) noexcept {
      auto& mine = static_cast<Orphan&>(call);
      std::erase_if(mine.client.orphans_,
                    [&](const auto& orphan) { return orphan.get() == &mine; });
    };
  }

  Client& client;
  std::string rule;
  std::string identity;
  std::string lease_id;
  Quota own_quota;
  std::array<Charge, 1> own;
  std::array<Decision, 1> told;
  Clock::time_point since;
  bool submitted = false;
};

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
    return listener_.OnFailed(call, Reason::kBreakerOpen, Listener::Fate::kNotDone);
  }
  if (waiting_ >= options_.most_waiting) {
    return listener_.OnFailed(call, Reason::kQueueFull, Listener::Fate::kNotDone);
  }
  Enqueue(call, now);
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
  while (link_.up() && !queue_.empty()) {
    if (queue_.front()->empty()) {
      Recycle(std::move(queue_.front()));
      queue_.pop_front();
      continue;
    }
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
  link_.Flush();
  NoteState();
}

void Client::Run(std::string command, Done done) {
  if (!link_.up()) return done(nullptr);
  link_.out().append(command);
  sent_.push_back({nullptr, std::move(done), Clock::now()});
  if (!armed()) Arm();
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
  stall_at_ = Clock::now() + options_.deadline;
  stats_.latency.Add(Clock::now() - sent.at);
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
  if (batch.empty()) stats_.late.Add();
  Batch::Summary summary{Batch::Summary::Verdict::kBadTypes};
  if (reply.is(Reply::Type::kText)) {
    reading_ = true;
    summary = batch.Read(reply.text, [&](Call& call) {
      Unlink(call);
      stats_.calls.Add();
      listener_.OnAnswered(call, sent.at);
    });
    reading_ = false;
  }
  if (summary.verdict == Batch::Summary::Verdict::kGood) {
    breaker_.OnSuccess();
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
  FailAll(batch, types ? Reason::kBadTypes : Reason::kBadResponse, Listener::Fate::kUnknown);
  // Whatever it was that came, the next reply may be the rest of it.
  link_.Fail(ErrorKind::kOther, "Redis sent a reply that does not fit what it was asked");
}

void Client::OnBatchError(Sent sent, std::string_view error) {
  const ErrorKind kind = KindOf(error);
  stats_.errors[static_cast<std::size_t>(kind)].Add();
  const std::string text(error);  // The reply's memory goes with the connection.
  Remedy remedy = RemedyOf(kind);
  // What was raised inside the script may have come after a write.
  const auto fate = kind == ErrorKind::kOther ? Listener::Fate::kUnknown : Listener::Fate::kNotDone;
  if (fate == Listener::Fate::kNotDone) sent.batch->NoteNotExecuted();
  if (sent.batch->empty()) return Recycle(std::move(sent.batch));
  if (remedy == Remedy::kSendText && sent.batch->attempts() < 3) {
    // What came by EVAL may be evicted again, what was loaded not.
    AppendCommand(link_.out(), {"SCRIPT", "LOAD", ApplyScript()});
    sent_.push_back({nullptr, nullptr, Clock::now()});
    return Send(std::move(sent.batch), Batch::Form::kText);
  }
  if (remedy == Remedy::kRetryOnce && sent.batch->attempts() < 2) {
    hold_until_ = Clock::now() + milliseconds{1} + milliseconds{backoff_.Random() % 5};
    queue_.push_front(std::move(sent.batch));
    return Arm();
  }
  listener_.OnNotice(Listener::Notice::kError, kind, text);
  FailAll(*sent.batch, Reason::kRedisError, fate);
  Recycle(std::move(sent.batch));
  if (remedy == Remedy::kReconnect) return link_.Fail(kind, text);
  breaker_.OnFailure(Clock::now());
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
}

// --- Failures -----------------------------------------------------------------------

void Client::FailAll(Batch& batch, Reason reason, Listener::Fate fate) {
  batch.TakeAll([&](Call& call) {
    Unlink(call);
    listener_.OnFailed(call, reason, fate);
  });
}

void Client::FailQueued(Reason reason) {
  auto queue = std::exchange(queue_, {});
  for (auto& batch : queue) {
    FailAll(*batch, reason, Listener::Fate::kNotDone);
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
    FailAll(*each.batch, reason, Listener::Fate::kUnknown);
    Recycle(std::move(each.batch));
  }
  FailQueued(reason);
}

void Client::FailOverdue(Clock::time_point now) {
  while (first_ != nullptr && At(first_->record.since) + options_.deadline <= now) {
    Call& call = *first_;
    Batch& batch = *static_cast<Batch*>(call.record.batch);
    const auto fate = batch.sent() ? Listener::Fate::kUnknown : Listener::Fate::kNotDone;
    batch.Remove(call);
    Unlink(call);
    listener_.OnFailed(call, Reason::kTimeout, fate);
  }
}

void Client::WatchStall(Clock::time_point now) {
  if (sent_.empty()) return;
  if (now - sent_.front().at > kDead) {
    return link_.Fail(ErrorKind::kOther,
                      "Redis has not answered for a second; the connection was dropped");
  }
  if (batches_under_way_ == 0 || now < stall_at_) return;
  stall_at_ = now + options_.deadline;
  breaker_.OnFailure(now);
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
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
  if (!sent_.empty()) due = std::min(due, sent_.front().at + kDead);
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
  for (std::size_t i = 0; i < orphans_.size(); ++i) {
    Orphan& orphan = *orphans_[i];
    if (orphan.submitted) continue;
    orphan.submitted = true;
    Enqueue(orphan, Clock::now());
  }
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

void Client::ReleaseLater(const Call& call) {
  std::erase_if(orphans_, [](const auto& orphan) {
    return !orphan->submitted && Clock::now() - orphan->since > orphan->own_quota.period();
  });
  for (const Charge& charge : call.charges) {
    if (charge.quota->algorithm() != Algorithm::kConcurrency || charge.lease.empty()) continue;
    if (orphans_.size() >= kMostOrphans) return;
    orphans_.push_back(std::make_unique<Orphan>(*this, charge));
    stats_.orphans.Add();
    if (!link_.up() || !Accepts(Clock::now())) continue;
    Orphan& orphan = *orphans_.back();
    orphan.submitted = true;
    Enqueue(orphan, Clock::now());
  }
}

}  // namespace tidegate::redis

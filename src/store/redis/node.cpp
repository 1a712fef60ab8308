// SPDX-License-Identifier: Apache-2.0
#include "store/redis/node.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "store/redis/client.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDead{1000};

}  // namespace

Node::Node(Client& client, const Link::Options& link)
    : net::Timer(client.reactor_.timers()),
      client_(client),
      link_(client.reactor_, link, *this),
      backoff_(RandomSeed()),
      breaker_(RandomSeed()),
      used_at_(Clock::now()) {}

void Node::Stop() {
  stopped_ = true;
  subscribed_ = false;
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
  if (MaySend() && !reading_) client_.reactor_.Again(*this);
  return true;
}

void Node::Take(std::unique_ptr<Batch> batch) {
  used_at_ = Clock::now();
  if (!Accepts(used_at_)) {
    return Fail(std::move(batch), Reason::kBreakerOpen, Executed::kNo);
  }
  PutBack(std::move(batch));
  if (!reading_) client_.reactor_.Again(*this);
}

bool Node::WouldBeTooLate() const noexcept {
  if (queue_.size() < 2) return false;
  // All that wait before it take their turn first. Without this, everybody would be sent with
  // hardly any time left, be charged, and fail.
  const auto turns = static_cast<std::int64_t>(queue_.size() + under_way_);
  return usual_latency_ * turns > client_.options_.deadline * 3 / 4;
}

void Node::Place(Call& call, Slot slot, bool single) {
  Round* round = queue_.empty() || queue_.back().full() ? nullptr : &queue_.back();
  if (!queue_.empty() && !queue_.back().again()) {
    if (Batch* const batch = queue_.back().Find(call, slot, single)) {
      const std::size_t before = batch->entries();
      if (batch->Add(call)) return queue_.back().Grow(batch->entries() - before);
      round = nullptr;
    }
  }
  if (round == nullptr) round = &queue_.emplace_back();
  auto batch = client_.batches_.New(slot, single);
  (void)batch->Add(call);  // One call always fits.
  round->Add(std::move(batch));
}

// --- Rounds going out ------------------------------------------------------------

void Node::SendWhatMay() {
  if (reading_) return;
  while (!queue_.empty()) {
    // Whether connected or not: batches without waiting calls must not pile up.
    auto& batches = queue_.front().batches();
    if (std::ranges::all_of(batches, [](const auto& batch) { return batch->empty(); })) {
      for (auto& batch : batches) client_.batches_.Give(std::move(batch));
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
      if (batch->empty()) client_.batches_.Give(std::move(batch));
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
  batch->Write(link_.out(), form, by_sha ? sha_ : ApplyScript(), client_.channel_);
  client_.stats_.batches.Add();
  client_.stats_.entries.Add(batch->entries());
  client_.stats_.keys.Add(batch->keys());
  if (ends_round && under_way_++ == 0) stall_at_ = now + client_.options_.deadline;
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

void Node::WatchStall(Clock::time_point now) {
  if (sent_.empty()) return;
  if (now - sent_.front().at >= Patience()) {
    return link_.Fail(ErrorKind::kOther,
                      link_.Shown() + " has not answered for a second; the connection was dropped");
  }
  if (under_way_ == 0 || now < stall_at_) return;
  stall_at_ = now + client_.options_.deadline;
  breaker_.OnFailure(now);
  NoteBreaker();
  if (breaker_.state() == Breaker::State::kOpen) FailQueued(Reason::kBreakerOpen);
}

void Node::NoteBreaker() {
  if (std::exchange(noted_, breaker_.state()) != breaker_.state()) client_.OnBreaker(*this);
}

Node::Clock::duration Node::Patience() const noexcept {
  return std::max<Clock::duration>(kDead, client_.options_.deadline);
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
  subscribed_ = greeting.subscribed();
  up_since_ = Clock::now();
  client_.stats_.connections.Add();
  breaker_.OnLinkUp();
  noted_ = breaker_.state();
  client_.OnNodeUp(*this);
  SendWhatMay();
}

void Node::OnLinkDown(ErrorKind kind, const std::string& problem) {
  const auto now = Clock::now();
  subscribed_ = false;
  if (kind != ErrorKind::kOther) client_.stats_.errors[static_cast<std::size_t>(kind)].Add();
  breaker_.OnLinkDown(now);
  noted_ = breaker_.state();
  // One that has held for a while is a new start; one that breaks at once is not.
  if (up_since_ != Clock::time_point{} && now - up_since_ > kDead) backoff_.Reset();
  up_since_ = {};
  reconnect_at_ = now + backoff_.Next();
  hold_until_ = {};
  client_.OnNodeDown(*this, kind, problem);
  if (stopped_) return;
  FailEverything(Reason::kRedisError);
  Arm();
}

}  // namespace tidegate::redis

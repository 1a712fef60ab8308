// SPDX-License-Identifier: Apache-2.0
#include "redis_pace.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tidegate::bench {

using std::chrono::nanoseconds;

PacedLoop::PacedLoop(RedisStoreHost& host, const std::vector<std::string>& identities)
    : host_(host),
      identities_(identities),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  host_.Do([this] { running_ = timer_ && host_.reactor().Watch(timer_.get(), *this); });
  if (!std::exchange(running_, false)) throw std::runtime_error("cannot create a timer");
}

PacedLoop::~PacedLoop() {
  // The task runs between two rounds of the reactor, so no event can refer to this object any more.
  host_.Do([this] { timer_.Close(); });
}

void PacedLoop::Ring(nanoseconds every) {
  const timespec interval{every.count() / 1'000'000'000, every.count() % 1'000'000'000};
  const itimerspec times{interval, interval};
  (void)timerfd_settime(timer_.get(), 0, &times, nullptr);
}

PacedLoop::Outcome PacedLoop::Run(const Load& load) {
  promise_ = {};
  auto done = promise_.get_future();
  host_.reactor().Post([this, load] {
    load_ = load;
    outcome_ = {};
    left_ = static_cast<std::size_t>(load.per_second * load.seconds);
    interval_ = nanoseconds{static_cast<std::int64_t>(1e9 / load.per_second)};
    next_ = Clock::now() + interval_;
    running_ = true;
    Ring(interval_);
  });
  auto outcome = done.get();
  std::ranges::sort(outcome.micros);
  return outcome;
}

void PacedLoop::OnReady(std::uint32_t) {
  std::uint64_t rings = 0;
  (void)!read(timer_.get(), &rings, sizeof rings);
  for (const auto now = Clock::now(); left_ > 0 && next_ <= now; next_ += interval_) {
    if (free_.empty()) {
      questions_.push_back(std::make_unique<Question>(this, [](Call& call) noexcept {
        auto& finished = static_cast<Question&>(call);
        static_cast<PacedLoop*>(finished.owner)->OnFinished(finished);
      }));
      free_.push_back(questions_.back().get());
    }
    Question& question = *free_.back();
    free_.pop_back();
    --left_;
    ++open_;
    question.intended = next_;
    question.Name(identities_[load_.draws->Next()], *load_.quota);
    host_.redis_store().Start(question);
  }
  EndIfAllAreAnswered();
}

void PacedLoop::OnFinished(Question& question) noexcept {
  outcome_.micros.push_back(
      std::chrono::duration<double, std::micro>(Clock::now() - question.intended).count());
  if (!question.exact()) ++outcome_.inexact;
  free_.push_back(&question);
  --open_;
}

/// Ends the run if all requests are decided. Until then the timer continues.
void PacedLoop::EndIfAllAreAnswered() {
  if (!running_ || left_ > 0 || open_ > 0) return;
  running_ = false;
  Ring(nanoseconds{0});
  // The waiting thread may start the next run before set_value() returns, so the promise is moved
  // away first.
  auto promise = std::move(promise_);
  promise.set_value(std::move(outcome_));
}

}  // namespace tidegate::bench

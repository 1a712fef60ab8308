// SPDX-License-Identifier: Apache-2.0
#include "store/redis/key_state.hpp"

#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"

namespace tidegate::redis {
namespace {

using Numbers = KeyState::Numbers;

Time At(std::int64_t micros) noexcept { return Time{Micros{micros}}; }
std::int64_t Ticks(Time time) noexcept { return time.time_since_epoch().count(); }

struct TokenBucket {
  static token_bucket::State Read(const Numbers& n) noexcept { return {n[0], At(n[1]), n[2]}; }
  static Numbers Write(const token_bucket::State& s) noexcept {
    return {s.tokens, Ticks(s.last_refill), s.rest};
  }
};
struct Gcra {
  static gcra::State Read(const Numbers& n) noexcept { return {At(n[0]), n[1], n[2]}; }
  static Numbers Write(const gcra::State& s) noexcept { return {Ticks(s.tat), s.rest, s.owed}; }
};
struct FixedWindow {
  static fixed_window::State Read(const Numbers& n) noexcept { return {At(n[0]), n[1]}; }
  static Numbers Write(const fixed_window::State& s) noexcept {
    return {Ticks(s.start), s.count, 0};
  }
};
struct SlidingWindow {
  static sliding_window::State Read(const Numbers& n) noexcept { return {At(n[0]), n[1], n[2]}; }
  static Numbers Write(const sliding_window::State& s) noexcept {
    return {Ticks(s.start), s.current, s.previous};
  }
};

template <class Kit, class Stepped>
Outcome Keep(Numbers& numbers, const Stepped& stepped) noexcept {
  if (stepped.outcome.effect != Effect::kNone) numbers = Kit::Write(stepped.next);
  return stepped.outcome;
}

}  // namespace

Outcome KeyState::Step(const Quota& quota, std::int64_t cost, std::int64_t count,
                       Time now) noexcept {
  Numbers& n = numbers_;
  switch (algorithm_) {
    case Algorithm::kTokenBucket:
      return Keep<TokenBucket>(n,
                               token_bucket::Step(TokenBucket::Read(n), quota, cost, count, now));
    case Algorithm::kGcra:
      return Keep<Gcra>(n, gcra::Step(Gcra::Read(n), quota, cost, count, now));
    case Algorithm::kFixedWindow:
      return Keep<FixedWindow>(n,
                               fixed_window::Step(FixedWindow::Read(n), quota, cost, count, now));
    default:
      return Keep<SlidingWindow>(
          n, sliding_window::Step(SlidingWindow::Read(n), quota, cost, count, now));
  }
}

Outcome KeyState::Debit(const Quota& quota, std::int64_t units, Time now) noexcept {
  Numbers& n = numbers_;
  switch (algorithm_) {
    case Algorithm::kTokenBucket:
      return Keep<TokenBucket>(n, token_bucket::Debit(TokenBucket::Read(n), quota, units, now));
    case Algorithm::kGcra:
      return Keep<Gcra>(n, gcra::Debit(Gcra::Read(n), quota, units, now));
    case Algorithm::kFixedWindow:
      return Keep<FixedWindow>(n, fixed_window::Debit(FixedWindow::Read(n), quota, units, now));
    default:
      return Keep<SlidingWindow>(n,
                                 sliding_window::Debit(SlidingWindow::Read(n), quota, units, now));
  }
}

Outcome KeyState::Refund(const Quota& quota, std::int64_t units, Time charged_at,
                         Time now) noexcept {
  Numbers& n = numbers_;
  switch (algorithm_) {
    case Algorithm::kTokenBucket:
      return Keep<TokenBucket>(n, token_bucket::Refund(TokenBucket::Read(n), quota, units, now));
    case Algorithm::kGcra:
      return Keep<Gcra>(n, gcra::Refund(Gcra::Read(n), quota, units, now));
    case Algorithm::kFixedWindow:
      return Keep<FixedWindow>(
          n, fixed_window::Refund(FixedWindow::Read(n), quota, units, charged_at, now));
    default:
      return Keep<SlidingWindow>(
          n, sliding_window::Refund(SlidingWindow::Read(n), quota, units, charged_at, now));
  }
}

void KeyState::Reset(const Quota& quota, Time now) noexcept {
  switch (algorithm_) {
    case Algorithm::kTokenBucket:
      numbers_ = TokenBucket::Write(token_bucket::Fresh(quota, now));
      return;
    case Algorithm::kGcra:
      numbers_ = Gcra::Write(gcra::Fresh(quota, now));
      return;
    case Algorithm::kFixedWindow:
      numbers_ = FixedWindow::Write(fixed_window::Fresh(quota, now));
      return;
    default:
      numbers_ = SlidingWindow::Write(sliding_window::Fresh(quota, now));
  }
}

}  // namespace tidegate::redis

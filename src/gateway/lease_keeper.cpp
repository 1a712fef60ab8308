// SPDX-License-Identifier: Apache-2.0
#include "gateway/lease_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace tidegate {

LeaseKeeper::~LeaseKeeper() {
  for (const auto& [due, held] : renewals_) held->Drop();
}

DecisionCall* LeaseKeeper::Hold(const DecisionCall& decided) {
  DecisionCall* held = nullptr;
  const auto& charges = decided.matched.charges;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].quota->algorithm() != Algorithm::kConcurrency) continue;
    if (held == nullptr) held = &pipeline_.BeginAfter(decided, Call::Kind::kRenew);
    held->AddCopy(decided, i, charges[i].cost);
  }
  if (held == nullptr) return nullptr;
  held->Attach<Held>(Schedule(*held));
  ArmNext();
  return held;
}

void LeaseKeeper::Release(DecisionCall& held) {
  Held& state = held.Attached<Held>();
  renewals_.erase(state.due);
  ArmNext();
  // In their order: a renewal that came after the release would take the lease again.
  state.released = state.renewing;
  if (state.renewing) return;
  held.kind = Call::Kind::kRelease;
  held.Start(nullptr);
}

LeaseKeeper::Renewals::iterator LeaseKeeper::Schedule(DecisionCall& held) {
  Micros shortest = Micros::max();
  for (const Charge& charge : held.matched.charges) {
    shortest = std::min(shortest, charge.quota->period());
  }
  // Three times per period: one lost renewal does not end the lease.
  const auto wait = std::max<Micros>(shortest / 3, std::chrono::milliseconds{1});
  // By the real time: the time of the reactor's round may be so old that this is due already.
  return renewals_.emplace(net::Timer::Clock::now() + wait, &held);
}

void LeaseKeeper::ArmNext() {
  if (renewals_.empty()) {
    Disarm();
  } else {
    ArmAt(renewals_.begin()->first);
  }
}

void LeaseKeeper::OnTimer(net::Timer::Clock::time_point now) {
  // Each lease that is due now, once: what is scheduled meanwhile is for later, however long this
  // takes.
  std::vector<DecisionCall*> due;
  for (const auto& [at, held] : renewals_) {
    if (at > now) break;
    due.push_back(held);
  }
  for (DecisionCall* const held : due) Renew(*held);
  ArmNext();
}

void LeaseKeeper::Renew(DecisionCall& held) {
  Held& state = held.Attached<Held>();
  renewals_.erase(state.due);
  state.due = Schedule(held);
  if (state.renewing) return;  // The last renewal has not been answered yet.
  state.renewing = true;
  held.Start(this);
}

void LeaseKeeper::OnDecided(DecisionCall& call) noexcept {
  Held& state = call.Attached<Held>();
  state.renewing = false;
  if (!state.released) return;
  call.kind = Call::Kind::kRelease;
  call.Start(nullptr);
}

}  // namespace tidegate

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
  state.released = true;
  // Wait for a renewal in progress: executed after the release, it would take the lease again.
  if (!state.renewing) StartRelease(held);
}

void LeaseKeeper::StartRelease(DecisionCall& held) {
  renewals_.erase(held.Attached<Held>().due);
  ArmNext();
  held.kind = Call::Kind::kRelease;
  held.Start(nullptr);
}

LeaseKeeper::Renewals::iterator LeaseKeeper::Schedule(DecisionCall& held) {
  Micros shortest = Micros::max();
  for (const Charge& charge : held.matched.charges) {
    shortest = std::min(shortest, charge.quota->period());
  }
  // Three renewals per period, so that one lost renewal does not end the lease.
  const auto wait = std::max<Micros>(shortest / 3, std::chrono::milliseconds{1});
  // The real time, not reactor.now(), which may be so old that the renewal would be due already.
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
  // Collect the leases that are due first, so that each is renewed once, even if the renewals take
  // so long that rescheduled ones become due.
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
  if (state.released) StartRelease(call);
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "limiter/failure_policy.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tidegate {
namespace {

Decision Closed(const Charge& charge) noexcept {
  return {.allowed = false,
          .decided_by = DecidedBy::kClosed,
          .limit = charge.quota->capacity(),
          .retry_after = FailurePolicy::kClosedFor,
          .rule = charge.rule};
}

Decision Open(const Charge& charge) noexcept {
  return {.allowed = true,
          .decided_by = DecidedBy::kOpen,
          .limit = charge.quota->capacity(),
          .rule = charge.rule};
}

bool Refuses(const Charge& charge) noexcept {
  return charge.on_failure == OnFailure::kClosed && charge.mode == Mode::kEnforce;
}

}  // namespace

Charge FailurePolicy::Share(const Charge& charge) {
  Charge share = charge;
  share.quota = &shares_.Of(*charge.quota);
  return share;
}

Decision FailurePolicy::Look(const Charge& charge) {
  auto look = local_.Peek(Share(charge));
  Decision decision = look ? *look : Closed(charge);
  if (look) decision.decided_by = DecidedBy::kLocal;
  return decision;
}

void FailurePolicy::Answer(Call& call) {
  call.error.reset();
  call.done = Done::kNothing;
  call.allowed = true;
  shares_.Begin(nodes_());
  const bool refused = std::ranges::any_of(call.charges, Refuses);
  // What would be told without anything being charged.
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    switch (charge.on_failure) {
      case OnFailure::kOpen:
        call.decisions[i] = Open(charge);
        break;
      case OnFailure::kClosed:
        call.decisions[i] = Closed(charge);
        break;
      case OnFailure::kLocal:
        if (refused || call.kind == Call::Kind::kPeek) call.decisions[i] = Look(charge);
        break;
    }
    if (refused && charge.mode == Mode::kEnforce && !call.decisions[i].allowed) {
      call.allowed = false;
    }
  }
  if (refused) return;
  if (call.kind == Call::Kind::kApply) return Apply(call);
  Each(call);
}

void FailurePolicy::Apply(Call& call) {
  std::array<Charge, kMaxCharges> charges;
  std::array<Decision, kMaxCharges> decisions;
  std::size_t count = 0;
  for (const Charge& charge : call.charges) {
    if (charge.on_failure == OnFailure::kLocal) charges[count++] = Share(charge);
  }
  if (count == 0) return;
  const auto admitted =
      local_.Apply(std::span(charges).first(count), 1, std::span(decisions).first(count));
  if (!admitted) {
    call.error = admitted.error();
    return;
  }
  call.allowed = *admitted == 1;
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (call.charges[i].on_failure != OnFailure::kLocal) continue;
    call.decisions[i] = decisions[next++];
    call.decisions[i].decided_by = DecidedBy::kLocal;
  }
}

Result<Done> FailurePolicy::Renew(const Charge& charge) {
  auto renewed = local_.Renew(charge);
  if (!renewed || *renewed == Done::kApplied) return renewed;
  // Acquired while Redis answered: this node learns of it now.
  auto taken = local_.Apply(charge);
  if (!taken) return std::unexpected(std::move(taken.error()));
  return taken->allowed ? Done::kApplied : Done::kNothing;
}

Result<Done> FailurePolicy::Carry(const Call& call, const Charge& charge) {
  switch (call.kind) {
    case Call::Kind::kRefund:
      return local_.Refund(charge, call.refund);
    case Call::Kind::kReset:
      return local_.Reset(charge);
    case Call::Kind::kRenew:
      return Renew(charge);
    case Call::Kind::kRelease:
      return local_.Release(charge);
    case Call::Kind::kDebit: {
      auto debited = local_.Debit(charge);
      if (!debited) return std::unexpected(std::move(debited.error()));
      return Done::kNothing;
    }
    default:
      return Done::kNothing;
  }
}

void FailurePolicy::Each(Call& call) {
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    if (charge.on_failure == OnFailure::kLocal) {
      const auto done = Carry(call, Share(charge));
      if (!done) {
        call.error = done.error();
        return;
      }
      if (*done == Done::kApplied) call.done = Done::kApplied;
      Charge look = charge;
      if (call.kind != Call::Kind::kPeek) look.cost = 1;
      call.decisions[i] = Look(look);
    } else if (charge.on_failure == OnFailure::kOpen && call.kind == Call::Kind::kRenew) {
      call.done = Done::kApplied;  // Nobody can say that it is gone: go on.
    }
    if (charge.mode == Mode::kEnforce && !call.decisions[i].allowed) call.allowed = false;
  }
}

}  // namespace tidegate

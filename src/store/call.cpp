// SPDX-License-Identifier: Apache-2.0
#include "store/call.hpp"

#include <exception>
#include <utility>

#include "store/store.hpp"

namespace tidegate {
namespace {

/// Returns true if all enforcing charges are allowed.
bool AllAllowed(const Call& call) noexcept {
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    if (call.charges[i].mode == Mode::kEnforce && !call.decisions[i].allowed) return false;
  }
  return true;
}

void Fail(Call& call, Error error) noexcept { call.error.emplace(std::move(error)); }

void RunApply(Store& store, Call& call) {
  if (call.charges.size() == 1) {
    auto decision = store.Apply(call.charges[0]);
    if (!decision) return Fail(call, std::move(decision.error()));
    call.decisions[0] = *decision;
    call.allowed = decision->allowed || call.charges[0].mode == Mode::kShadow;
    return;
  }
  auto admitted = store.Apply(call.charges, 1, call.decisions);
  if (!admitted) return Fail(call, std::move(admitted.error()));
  call.allowed = *admitted == 1;
}

Result<Applied> RunOn(Store& store, const Call& call, const Charge& charge) {
  switch (call.kind) {
    case Call::Kind::kRefund: return store.Refund(charge, call.refund);
    case Call::Kind::kReset: return store.Reset(charge);
    case Call::Kind::kRenew: return store.Renew(charge);
    case Call::Kind::kRelease: return store.Release(charge);
    default: return Applied::kNo;
  }
}

/// Carries out one charge after the other; each decision describes the state of its key afterwards.
void RunEach(Store& store, Call& call) {
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    auto done = RunOn(store, call, charge);
    if (!done) return Fail(call, std::move(done.error()));
    if (*done == Applied::kYes) call.applied = Applied::kYes;
    // After an operation other than a peek, the decision says whether a request of cost 1 would
    // pass.
    Charge look = charge;
    if (call.kind != Call::Kind::kPeek) look.cost = 1;
    auto decision = call.kind == Call::Kind::kDebit ? store.Debit(charge) : store.Peek(look);
    if (!decision) return Fail(call, std::move(decision.error()));
    call.decisions[i] = *decision;
  }
  call.allowed = AllAllowed(call);
}

}  // namespace

void Store::Start(Call& call) noexcept {
  call.error.reset();
  call.applied = Applied::kNo;
  try {
    if (call.kind == Call::Kind::kApply) {
      RunApply(*this, call);
    } else {
      RunEach(*this, call);
    }
  } catch (const std::exception&) {
    // Only an Error's message allocates. If there is no memory for the message, report the code
    // alone.
    Fail(call, Error{ErrorCode::kExhausted, {}});
  }
  call.finished(call);
}

}  // namespace tidegate

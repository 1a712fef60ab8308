// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fixed_window.hpp"
#include "core/gcra.hpp"
#include "core/sliding_window.hpp"
#include "core/token_bucket.hpp"

/// The four algorithms whose state has a constant size, as types with the same members, so that
/// one template serves all of them.
namespace tidegate::constant_size {

template <class StateType, auto kFresh, auto kStep, auto kDebit, auto kRefund>
struct Steps {
  using State = StateType;
  static constexpr auto Fresh = kFresh;
  static constexpr auto Step = kStep;
  static constexpr auto Debit = kDebit;
  static constexpr auto Refund = kRefund;
};
using TokenBucket = Steps<token_bucket::State, token_bucket::Fresh, token_bucket::Step,
                          token_bucket::Debit, token_bucket::Refund>;
using Gcra = Steps<gcra::State, gcra::Fresh, gcra::Step, gcra::Debit, gcra::Refund>;
using FixedWindow = Steps<fixed_window::State, fixed_window::Fresh, fixed_window::Step,
                          fixed_window::Debit, fixed_window::Refund>;
using SlidingWindow = Steps<sliding_window::State, sliding_window::Fresh, sliding_window::Step,
                            sliding_window::Debit, sliding_window::Refund>;

/// Calls `visit` with the type of `algorithm`. REQUIRES: `algorithm` is one of these four.
template <class Visit>
auto Dispatch(Algorithm algorithm, Visit visit) {
  switch (algorithm) {
    case Algorithm::kGcra: return visit(Gcra{});
    case Algorithm::kFixedWindow: return visit(FixedWindow{});
    case Algorithm::kSlidingWindow: return visit(SlidingWindow{});
    default: return visit(TokenBucket{});
  }
}

}  // namespace tidegate::constant_size

// SPDX-License-Identifier: Apache-2.0
#include "decision/pipeline.hpp"

#include <cassert>
#include <random>
#include <utility>

namespace tidegate {

DecisionPipeline::DecisionPipeline(AsyncStore& store, Tally& metrics,
                                   std::shared_ptr<const Snapshot> snapshot,
                                   std::shared_ptr<const OverrideTable> overrides)
    : store_(store),
      metrics_(metrics),
      snapshot_(MakeSnapshotRef(std::move(snapshot))),
      overrides_(std::move(overrides)),
      random_(std::random_device{}() | 1u) {
  free_.reserve(kMaxFree);  // So that Free cannot fail.
}

DecisionPipeline::~DecisionPipeline() { assert(in_use_ == 0); }

DecisionCall& DecisionPipeline::Begin() {
  std::unique_ptr<DecisionCall> call;
  if (free_.empty()) {
    call = std::make_unique<DecisionCall>(*this);
  } else {
    call = std::move(free_.back());
    free_.pop_back();
  }
  ++in_use_;
  call->snapshot_ = snapshot_;
  return *call.release();
}

DecisionCall& DecisionPipeline::BeginAfter(const DecisionCall& decided, Call::Kind kind) {
  DecisionCall& call = Begin();
  call.kind = kind;
  call.snapshot_ = decided.snapshot_;
  call.matched.kept = decided.matched.kept;
  return call;
}

void DecisionPipeline::Free(DecisionCall& call) noexcept {
  --in_use_;
  std::unique_ptr<DecisionCall> owned(&call);
  if (free_.size() == kMaxFree) return;
  owned->Clear();
  free_.push_back(std::move(owned));
}

// xorshift64*: fast, and random enough to spread the retries of clients.
Micros DecisionPipeline::RetryJitter(const Config::Responses& responses) noexcept {
  const std::int64_t most = responses.retry_after_jitter.count();
  if (most == 0) return Micros{0};
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  const std::uint64_t number = random_ * 0x2545F4914F6CDD1Du;
  return Micros{static_cast<std::int64_t>(number % (static_cast<std::uint64_t>(most) + 1))};
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "decision/decision_call.hpp"
#include "decision/snapshot.hpp"
#include "rules/override_table.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// What the decisions of one reactor share, whichever frontend they come from: the pool of calls,
/// the store, the metrics, the configuration snapshot, and beside it the overrides, which change at
/// run time. DecisionCall takes a request through it. Everything on the reactor's thread.
class DecisionPipeline {
 public:
  /// Store and metrics must outlive the pipeline.
  DecisionPipeline(AsyncStore& store, Tally& metrics, std::shared_ptr<const Snapshot> snapshot,
                   std::shared_ptr<const OverrideTable> overrides);
  DecisionPipeline(const DecisionPipeline&) = delete;
  DecisionPipeline& operator=(const DecisionPipeline&) = delete;
  /// REQUIRES: the store has returned all calls.
  ~DecisionPipeline();

  /// For calls from now on; those in progress keep what they began with.
  void Use(std::shared_ptr<const Snapshot> snapshot) {
    snapshot_ = MakeSnapshotRef(std::move(snapshot));
  }
  void Use(std::shared_ptr<const OverrideTable> overrides) noexcept {
    overrides_ = std::move(overrides);
  }
  [[nodiscard]] const SnapshotRef& snapshot() const noexcept { return snapshot_; }
  [[nodiscard]] const std::shared_ptr<const OverrideTable>& overrides() const noexcept {
    return overrides_;
  }

  /// A new call with the current snapshot. The caller must Start or Drop it.
  [[nodiscard]] DecisionCall& Begin();
  /// A new call that settles something of `decided`: a debit, a refund, a release. It shares its
  /// snapshot and may outlive it.
  [[nodiscard]] DecisionCall& BeginAfter(const DecisionCall& decided, Call::Kind kind);
  /// `call` will be started soon: lets the store load what is far away in memory.
  void Prefetch(const DecisionCall& call) noexcept { store_.Expect(call.matched.charges.front()); }

  /// A random duration up to `responses.retry_after_jitter`, which spreads the clients' retries.
  [[nodiscard]] Micros RetryJitter(const Config::Responses& responses) noexcept;

 private:
  friend class DecisionCall;
  /// Free calls above this number are deleted: a burst does not keep its memory.
  static constexpr std::size_t kMaxFree = 4096;

  void Free(DecisionCall& call) noexcept;

  AsyncStore& store_;
  Tally& metrics_;
  SnapshotRef snapshot_;
  std::shared_ptr<const OverrideTable> overrides_;  ///< Never nullptr.
  std::vector<std::unique_ptr<DecisionCall>> free_;
  std::size_t in_use_ = 0;
  std::uint64_t random_;
};

}  // namespace tidegate

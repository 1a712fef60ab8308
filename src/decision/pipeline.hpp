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

/// The state that the decisions of one reactor share, whatever frontend they come from: the pool of
/// calls, the store, the metrics, the configuration snapshot, and beside it the overrides, which
/// change at run time. DecisionCall takes a request through it. All methods must be called on the
/// reactor's thread.
class DecisionPipeline {
 public:
  /// Store and metrics must outlive the pipeline.
  DecisionPipeline(AsyncStore& store, Tally& metrics, std::shared_ptr<const Snapshot> snapshot,
                   std::shared_ptr<const OverrideTable> overrides);
  DecisionPipeline(const DecisionPipeline&) = delete;
  DecisionPipeline& operator=(const DecisionPipeline&) = delete;
  /// REQUIRES: the store has returned all calls.
  ~DecisionPipeline();

  /// Sets the snapshot or the overrides of new calls. Calls in progress keep theirs.
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

  /// Returns a new call with the current snapshot. The caller must Start or Drop it.
  [[nodiscard]] DecisionCall& Begin();
  /// Returns a new call that settles charges of `decided` (a debit, a refund, a renewal or a
  /// release). It shares the snapshot of `decided` and may outlive that call.
  [[nodiscard]] DecisionCall& BeginAfter(const DecisionCall& decided, Call::Kind kind);
  /// Lets the store load the key of `call` into the CPU's cache, because it will be started soon.
  void Prefetch(const DecisionCall& call) noexcept { store_.Expect(call.matched.charges.front()); }

  /// Returns a random duration up to `responses.retry_after_jitter`, to spread retries of clients.
  [[nodiscard]] Micros RetryJitter(const Config::Responses& responses) noexcept;
  /// Deletes free calls, but for a few. REQUIRES: no call is running.
  void Trim() noexcept {
    if (free_.size() > kFewFree) free_.resize(kFewFree);
  }

 private:
  friend class DecisionCall;
  /// More free calls than this are deleted, so that a burst of requests does not keep its memory.
  static constexpr std::size_t kMaxFree = 4096;
  static constexpr std::size_t kFewFree = 128;  ///< 0.4 MB.

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

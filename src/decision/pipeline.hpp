// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/inline_vector.hpp"
#include "base/random.hpp"
#include "decision/answer.hpp"
#include "decision/snapshot.hpp"
#include "rules/override.hpp"
#include "rules/rule_set.hpp"
#include "store/call.hpp"
#include "store/store.hpp"
#include "telemetry/decision_metrics.hpp"

namespace tidegate {

class DecisionCall;
class DecisionPipeline;

/// Receives the outcomes of calls. Implemented by a frontend or by one of its requests.
class DecisionListener {
 public:
  /// Called when `call` is answered. The listener must Drop it or Start it again, now or later.
  virtual void OnDecided(DecisionCall& call) noexcept = 0;

 protected:
  ~DecisionListener() = default;
};

/// One decision request in progress: from its charges to the decisions about it.
/// DecisionPipeline::Begin takes a call from the reactor's pool and Drop returns it, both on the
/// reactor's thread. A call points only at its own memory, snapshot and override table, so it may
/// be dropped at any time; if the store has the call then, it is freed when the store returns it.
class DecisionCall final : public Call {
  // Declared first, because `matched` and `store_decisions_` allocate from it.
  static constexpr std::size_t kArena = 2048;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};

 public:
  explicit DecisionCall(DecisionPipeline& pipeline) : pipeline_(pipeline) {}

  // --- The request; `kind` and `refund` are members of Call ---
  Charges matched{memory_};           ///< The charges, and the decisions of operators.
  Access access = Access::kRules;     ///< kRules: the charges decide.
  std::optional<Quota> inline_quota;  ///< Owns the quota that the charge of an inline quota uses.

  [[nodiscard]] DecisionPipeline& pipeline() const noexcept { return pipeline_; }
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *snapshot_; }
  /// Returns memory that stays valid until the call is freed.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }
  /// Returns a copy of `text` in memory().
  [[nodiscard]] std::string_view Keep(std::string_view text) {
    if (text.empty()) return {};
    auto* const copy = static_cast<char*>(memory_.allocate(text.size(), 1));
    std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }
  /// Copies a charge of `other`, with its texts, into this call. REQUIRES: both share a snapshot.
  void AddCopy(const DecisionCall& other, std::size_t charge, std::int64_t cost);

  /// Constructs a frontend's own data inside the call, where it is available until the answer.
  template <class T, class... Args>
  T& Attach(Args&&... args) {
    static_assert(sizeof(T) <= kAttached && alignof(T) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_destructible_v<T>);
    return *std::construct_at(reinterpret_cast<T*>(attached_.data()), std::forward<Args>(args)...);
  }
  /// Returns the attached data. REQUIRES: an earlier Attach of the same type.
  template <class T>
  [[nodiscard]] T& Attached() noexcept {
    return *std::launder(reinterpret_cast<T*>(attached_.data()));
  }

  /// Hands `matched` to the store and calls `listener` when the call is answered, perhaps before
  /// Start returns; if `listener` is nullptr, frees the call. May be called again after the answer.
  void Start(DecisionListener* listener);
  /// Returns the call to the pool, now or when the store returns it. Do not use it afterwards.
  void Drop() noexcept;

  // --- The answer; `allowed`, `done`, `decisions` and `error` are members of Call ---
  /// Returns the complete answer. REQUIRES: the call is answered, without an error.
  [[nodiscard]] Answer answer() const noexcept;
  /// Returns the answer without the parts that its reader must not see. REQUIRES: as for answer().
  [[nodiscard]] Answer AnswerFor(const Disclosure& disclosure);

 private:
  friend class DecisionPipeline;

  static constexpr std::size_t kAttached = 64;

  /// Fills in the answer of a call without charges, which needs no store.
  void DecideWithoutStore() noexcept;
  /// Times and counts the decisions of the answered call, then calls the listener.
  void Complete() noexcept;
  void Count() const noexcept;
  /// Returns the rule whose key an operator banned or allowed; nullptr: there is none.
  [[nodiscard]] const Rule* OperatorRule() const noexcept {
    if (matched.ban.rule != nullptr) return matched.ban.rule;
    return matched.exempted.empty() ? nullptr : matched.exempted.front();
  }
  [[nodiscard]] bool HasHiddenRule() const noexcept {
    if (charges.empty()) {
      const Rule* const rule = OperatorRule();
      return rule != nullptr && rule->hidden();
    }
    return std::ranges::any_of(matched.rules.all(),
                               [](const Rule* rule) { return rule != nullptr && rule->hidden(); });
  }
  /// Makes the call ready for another request.
  void Clear() noexcept;

  DecisionPipeline& pipeline_;
  SnapshotRef snapshot_;
  DecisionListener* listener_ = nullptr;  ///< nullptr: the call is freed when it is answered.
  bool in_store_ = false;                 ///< The store has the call, so it must not be freed.
  DecisionLatency::Mark latency_;
  InlineVector<Decision, 2> store_decisions_{memory_};
  Decision operator_decision_;  ///< Made by a ban or an allowance; otherwise `rule` is empty.
  alignas(std::max_align_t) std::array<std::byte, kAttached> attached_;
};

/// The deleter of DecisionCallPtr: drops a call that was neither started nor handed on.
struct DropDecisionCall {
  void operator()(DecisionCall* call) const noexcept { call->Drop(); }
};
using DecisionCallPtr = std::unique_ptr<DecisionCall, DropDecisionCall>;

/// The state that the decisions of one reactor share, for all frontends: the pool of calls, store,
/// metrics, configuration snapshot, and overrides. All methods run on the reactor's thread.
class DecisionPipeline {
 public:
  /// Store and metrics must outlive the pipeline.
  DecisionPipeline(AsyncStore& store, DecisionMetrics& metrics,
                   std::shared_ptr<const Snapshot> snapshot,
                   std::shared_ptr<const OverrideTable> overrides);
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
  /// Returns a new call for a debit, refund, renewal or release of charges of `decided`.
  [[nodiscard]] DecisionCall& BeginAfter(const DecisionCall& decided, Call::Kind kind) {
    DecisionCall& call = Begin();
    call.kind = kind;
    call.snapshot_ = decided.snapshot_;
    call.matched.kept = decided.matched.kept;
    return call;
  }
  /// Lets the store load the key of `call`, which will start soon, into the CPU's cache.
  void Prefetch(const DecisionCall& call) noexcept {
    store_.Prefetch(call.matched.charges.front());
  }

  /// Returns a random duration up to `responses.retry_after_jitter`, to spread retries of clients.
  [[nodiscard]] Micros RetryJitter(const Config::Responses& responses) noexcept {
    const std::int64_t most = responses.retry_after_jitter.count();
    if (most == 0) return Micros{0};
    const std::uint64_t span = static_cast<std::uint64_t>(most) + 1;
    return Micros{static_cast<std::int64_t>(random_.Next() % span)};
  }
  /// Deletes all but a few free calls. REQUIRES: no call is running.
  void Trim() noexcept {
    if (free_.size() > kFewFree) free_.resize(kFewFree);
  }

 private:
  friend class DecisionCall;
  /// More free calls than this are deleted, so that a burst of requests does not keep its memory.
  static constexpr std::size_t kMaxFree = 4096;
  static constexpr std::size_t kFewFree = 128;  ///< 0.4 MB.

  void Free(DecisionCall& call) noexcept {
    --in_use_;
    std::unique_ptr<DecisionCall> owned(&call);
    if (free_.size() == kMaxFree) return;
    owned->Clear();
    free_.push_back(std::move(owned));
  }

  AsyncStore& store_;
  DecisionMetrics& metrics_;
  SnapshotRef snapshot_;
  std::shared_ptr<const OverrideTable> overrides_;  ///< Never nullptr.
  std::vector<std::unique_ptr<DecisionCall>> free_;
  std::size_t in_use_ = 0;
  Random random_;
};

}  // namespace tidegate

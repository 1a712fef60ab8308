// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "decision/answer.hpp"
#include "decision/snapshot.hpp"
#include "rules/inline_vector.hpp"
#include "rules/rule_set.hpp"
#include "telemetry/decision_latency.hpp"
#include "tidegate/call.hpp"

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

/// One question in progress: from the charges of a request to the decisions about it.
///
/// A call comes from its reactor's pool (DecisionPipeline::Begin) and returns there (Drop). It
/// points only at its own memory and at the snapshot and override table that it holds. A frontend
/// may therefore drop it at any time. If the store has the call then, it is freed when the store
/// returns it, and no listener is called. Not thread-safe: a call stays on its reactor's thread.
class DecisionCall final : public Call {
  // Declared first, because `matched` and `store_decisions_` allocate from it.
  static constexpr std::size_t kArena = 2048;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};

 public:
  explicit DecisionCall(DecisionPipeline& pipeline) : pipeline_(pipeline) {}

  // --- The question; `kind` and `refund` are Call's ---
  Charges matched{memory_};           ///< The charges, and the decisions of operators.
  Access access = Access::kRules;     ///< Whether the request is decided before any charge.
  std::optional<Quota> inline_quota;  ///< Owns the quota that the charge of an inline quota uses.

  [[nodiscard]] DecisionPipeline& pipeline() const noexcept { return pipeline_; }
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *snapshot_; }
  /// Memory that lasts until the call is freed.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }
  /// Returns a copy of `text` in memory().
  [[nodiscard]] std::string_view Keep(std::string_view text);
  /// Adds a copy of a charge of `other`, with its texts. REQUIRES: both calls share a snapshot.
  void AddCopy(const DecisionCall& other, std::size_t charge, std::int64_t cost);

  /// Constructs a frontend's own data, which it needs until the answer, inside the call.
  template <class T, class... Args>
  T& Attach(Args&&... args) {
    static_assert(sizeof(T) <= kAttached && alignof(T) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_destructible_v<T>);
    return *std::construct_at(reinterpret_cast<T*>(attached_.data()), std::forward<Args>(args)...);
  }
  /// REQUIRES: an earlier Attach of the same type.
  template <class T>
  [[nodiscard]] T& Attached() noexcept {
    return *std::launder(reinterpret_cast<T*>(attached_.data()));
  }

  /// Hands `matched` to the store and calls `listener` when the call is answered, perhaps before
  /// Start returns. If `listener` is nullptr, the call is freed instead. May be called again after
  /// the answer.
  void Start(DecisionListener* listener);
  /// Returns the call to the pool, now or when the store returns it. The caller must not use the
  /// call afterwards.
  void Drop() noexcept;

  // --- The answer; `allowed`, `done`, `decisions` and `error` are Call's ---
  /// Returns the whole answer. REQUIRES: the call is answered, without an error.
  [[nodiscard]] Answer answer() const noexcept;
  /// Returns the answer without the parts that its reader must not see. Allocates from memory() if
  /// a rule is hidden. REQUIRES: as answer().
  [[nodiscard]] Answer AnswerFor(const Disclosure& disclosure);

 private:
  friend class DecisionPipeline;

  static constexpr std::size_t kAttached = 64;

  /// Fills in the answer of a call without charges, which needs no store.
  void DecideWithoutStore() noexcept;
  /// Times and counts the decisions of the answered call, then calls the listener.
  void Complete() noexcept;
  void Count() const noexcept;
  /// Returns the rule whose key an operator banned or allowed; nullptr: none.
  [[nodiscard]] const Rule* OperatorRule() const noexcept;
  [[nodiscard]] bool HasHiddenRule() const noexcept;
  /// Makes the call ready for another request.
  void Clear() noexcept;

  DecisionPipeline& pipeline_;
  SnapshotRef snapshot_;
  DecisionListener* listener_ = nullptr;  ///< nullptr: the call is freed when it is answered.
  bool in_store_ = false;                 ///< The store has the call, so it must not be freed.
  DecisionLatency::Mark latency_;
  InlineVector<Decision, 2> store_decisions_{memory_};
  Decision operator_decision_;  ///< By a ban or an allowance; `rule` is empty without one.
  alignas(std::max_align_t) std::array<std::byte, kAttached> attached_;
};

/// Owns a call until it is started, or handed on: drops it otherwise.
struct DropDecisionCall {
  void operator()(DecisionCall* call) const noexcept { call->Drop(); }
};
using DecisionCallPtr = std::unique_ptr<DecisionCall, DropDecisionCall>;

}  // namespace tidegate

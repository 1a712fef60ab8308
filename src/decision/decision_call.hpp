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

/// Receives the outcome of calls: a frontend, or one of its requests.
class DecisionListener {
 public:
  /// The call is answered. The listener must Drop it or Start it again, now or later.
  virtual void OnDecided(DecisionCall& call) noexcept = 0;

 protected:
  ~DecisionListener() = default;
};

/// One question in progress: from the charges of a request to the decisions about it.
///
/// It comes from its reactor's pool (DecisionPipeline::Begin) and returns there (Drop). All that it
/// points at lives in its own memory, in the snapshot or in the override table that it holds. So a
/// frontend may drop it at any time, also while the store has it: it is freed when the store
/// returns it, and no listener is called. Belongs to one thread.
class DecisionCall final : public Call {
  // Declared first: `matched` and the decisions use them.
  static constexpr std::size_t kArena = 2048;
  std::array<std::byte, kArena> arena_;
  std::pmr::monotonic_buffer_resource memory_{arena_.data(), arena_.size()};

 public:
  explicit DecisionCall(DecisionPipeline& pipeline) : pipeline_(pipeline) {}

  // --- The question; `kind` and `refund` are Call's ---
  Charges matched{memory_};           ///< The charges, and what operators decided.
  Access access = Access::kRules;     ///< What becomes of the request before any charge.
  std::optional<Quota> inline_quota;  ///< What the charge of an inline quota points at.

  [[nodiscard]] DecisionPipeline& pipeline() const noexcept { return pipeline_; }
  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *snapshot_; }
  /// Memory that lasts until the call is freed.
  [[nodiscard]] std::pmr::memory_resource& memory() noexcept { return memory_; }
  /// Returns a copy of `text` in that memory.
  [[nodiscard]] std::string_view Keep(std::string_view text);
  /// Adds a charge of `other`, whose snapshot this call must share; copies its texts.
  void AddCopy(const DecisionCall& other, std::size_t charge, std::int64_t cost);

  /// Constructs what a frontend needs until the answer, in the call itself.
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

  /// Asks the store about `matched`; `listener` is called when the call is answered, perhaps before
  /// this returns. nullptr: the call is freed then. May be called again after the answer.
  void Start(DecisionListener* listener);
  /// The caller no longer needs the call: it has the answer, or its client is gone.
  void Drop() noexcept;

  // --- The answer; `allowed`, `done`, `decisions` and `error` are Call's ---
  /// REQUIRES: the call is answered, without an error.
  [[nodiscard]] Answer answer() const noexcept;

 private:
  friend class DecisionPipeline;

  static constexpr std::size_t kAttached = 64;

  /// Fills the answer where the store is not asked.
  void DecideWithoutStore() noexcept;
  /// The call is answered: times and counts the decisions, and calls the listener.
  void Complete() noexcept;
  void Count() const noexcept;
  /// Ready for another request.
  void Clear() noexcept;

  DecisionPipeline& pipeline_;
  SnapshotRef snapshot_;
  DecisionListener* listener_ = nullptr;  ///< nullptr: nobody waits for the answer.
  bool in_store_ = false;                 ///< The store has the call: it must not be freed.
  DecisionLatency::Mark latency_;
  InlineVector<Decision, 2> store_decisions_{memory_};
  Decision operator_decision_;  ///< Of a ban, or of an allowance.
  alignas(std::max_align_t) std::array<std::byte, kAttached> attached_;
};

}  // namespace tidegate

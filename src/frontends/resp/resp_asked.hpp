// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>

#include "frontends/policy.hpp"
#include "frontends/resolve.hpp"
#include "frontends/resp/resp_writer.hpp"
#include "telemetry/decision_latency.hpp"
#include "telemetry/tally.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

class RespConnection;
class RespFrontend;

/// One command under way that the store answers. It concerns one charge. Used again and again; it
/// outlives its connection where that goes first.
struct RespAsked : Call {
  enum class Form : std::uint8_t {
    kThrottle,  ///< The five integers of redis-cell.
    kDecision,  ///< The same in milliseconds and the decided_by; a map in version 3.
    kDone,      ///< 1 or 0: whether there was something to do.
  };

  explicit RespAsked(RespFrontend& owner) : door(owner) {}

  /// Empty again: what it holds of a policy and of its memory is given back.
  void Clear() noexcept;
  void Write(RespWriter& writer) const;
  /// A request to pass that is answered.
  void CountIn(Tally& tally) const noexcept {
    if (settled != Settled::kNo) [[unlikely]]
      return CountSettled(tally);
    tally.Count(slot(), charge, decision);
  }

  RespFrontend& door;
  RespConnection* connection = nullptr;  ///< nullptr: it has gone.
  RespAsked* next = nullptr;             ///< The one that is to be answered after it.
  std::shared_ptr<const Policy> policy;
  Form form = Form::kDecision;
  bool ready = false;         ///< It is answered.
  std::string refusal;        ///< It was not even asked: what the client is told.
  std::int64_t quantity = 1;  ///< Of CL.THROTTLE.
  Charge charge;
  Decision decision;
  DecisionLatency::Mark mark;
  const Rule* rule = nullptr;  ///< nullptr: an inline quota.
  std::optional<Quota> quota;  ///< Of CL.THROTTLE.
  /// What an operator decided: the store is not asked then.
  enum class Settled : std::uint8_t { kNo, kBanned, kExempt } settled = Settled::kNo;
  std::shared_ptr<const OverrideTable> kept;  ///< Where the charge's quota stands, if there.
  std::array<std::byte, 768> arena;
  std::pmr::monotonic_buffer_resource memory{arena.data(), arena.size()};

 private:
  [[nodiscard]] std::uint32_t slot() const noexcept {
    return rule == nullptr ? RuleSlots::kOther : policy->slots[rule->number];
  }
  void CountSettled(Tally& tally) const noexcept;
};

}  // namespace tidegate

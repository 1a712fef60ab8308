// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <memory_resource>
#include <optional>
#include <vector>

#include "frontends/answer.hpp"
#include "frontends/api_frontend.hpp"
#include "frontends/resolve.hpp"
#include "net/http_exchange.hpp"
#include "telemetry/decision_latency.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// One question under way. Lives in its exchange's memory.
struct ApiFrontend::Asked : Call {
  Asked(ApiFrontend& owner, net::HttpExchange& of)
      : door(owner),
        exchange(of),
        policy(owner.policy_),
        resolved(of.memory()),
        answers(&of.memory()) {}

  ApiFrontend& door;
  net::HttpExchange& exchange;
  std::shared_ptr<const Policy> policy;
  Resolved resolved;
  std::pmr::vector<Decision> answers;
  Batch* batch = nullptr;
  DecisionLatency::Mark mark;
  int deny_status = 0;  ///< Of /v1/auth: what a refusal is answered with; 0: by its own status.

  std::optional<Objection> Prepare(const Question& question, const Endpoint& endpoint);

  /// What was resolved is what is asked.
  void TakeCharges() {
    answers.resize(resolved.charges.charges.size());
    charges = resolved.charges.charges;
    decisions = answers;
  }

  [[nodiscard]] Answer answer() const noexcept {
    if (!charges.empty()) return AnswerOf(*this);
    Answer plain = AnswerOf(resolved.access, resolved.charges);
    // Who may always pass holds what it says it holds.
    if (kind == Kind::kRenew && plain.exempt) plain.applied = Done::kApplied;
    return plain;
  }

  /// Looks and questions are answered by their outcome; an operation that was carried out is not a
  /// denial. One that a failure policy closed was not.
  [[nodiscard]] int StatusOf(const Answer& answer) const noexcept {
    if (kind == Kind::kApply || kind == Kind::kPeek || answer.denied) return answer.status();
    if (answer.governing == nullptr) return 200;
    if (answer.governing->decided_by == DecidedBy::kClosed) return 503;
    // 404 tells the holder to stop, and an open rule does not know that the lease is gone.
    const bool gone = kind == Kind::kRenew && done != Done::kApplied;
    return gone && answer.governing->decided_by != DecidedBy::kOpen ? 404 : 200;
  }
};

}  // namespace tidegate

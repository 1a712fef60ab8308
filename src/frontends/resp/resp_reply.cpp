// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_reply.hpp"

#include <chrono>
#include <string>

#include "frontends/resp/throttle.hpp"

namespace tidegate {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

std::int64_t Millis(Micros duration) noexcept { return ceil<milliseconds>(duration).count(); }

/// Writes the seven elements, in both versions of the protocol: a client that upgrades to version 3
/// must not have to read another answer. `limit`, `remaining` and the time until the quota is full
/// are -1 if nothing was counted.
void WriteNumbers(RespWriter& writer, const Decision& decision, bool allowed) {
  const bool counted = IsCounted(decision);
  writer.Array(7);
  writer.Integer(allowed ? 0 : 1);
  writer.Integer(counted ? decision.limit : -1);
  writer.Integer(counted ? decision.remaining : -1);
  writer.Integer(allowed || decision.never ? -1 : Millis(decision.retry_after));
  writer.Integer(counted ? Millis(decision.reset_after) : -1);
  writer.Text(Name(decision.decided_by));
  writer.Text(Name(decision.reason));
}

/// Writes the members of the JSON answer, each present when it is there. True is 1 and false is 0,
/// because version 2 has no other booleans.
void WriteMap(RespWriter& writer, const Decision& decision, bool allowed) {
  const bool counted = IsCounted(decision);
  const bool waits = !allowed && !decision.never;
  const bool never = !allowed && decision.never && counted;  // A ban without an end has neither.
  writer.Map(4u + (counted ? 3u : 0u) + (waits || never ? 1u : 0u));
  writer.Text("allowed");
  writer.Integer(allowed ? 1 : 0);
  writer.Text("rule");
  writer.Text(decision.rule);
  if (counted) {
    writer.Text("limit");
    writer.Integer(decision.limit);
    writer.Text("remaining");
    writer.Integer(decision.remaining);
  }
  if (waits) {
    writer.Text("retry_after_ms");
    writer.Integer(Millis(decision.retry_after));
  } else if (never) {
    writer.Text("never");
    writer.Integer(1);
  }
  if (counted) {
    writer.Text("reset_after_ms");
    writer.Integer(Millis(decision.reset_after));
  }
  writer.Text("decided_by");
  writer.Text(Name(decision.decided_by));
  writer.Text("reason");
  writer.Text(Name(decision.reason));
}

}  // namespace

void WriteReply(RespWriter& writer, DecisionCall& call) {
  const RespPending& pending = call.Attached<RespPending>();
  if (pending.form == RespPending::Form::kError) return writer.Error(pending.error);
  if (call.error) return writer.Error("ERR " + call.error->message);
  if (pending.form == RespPending::Form::kThrottle) {
    writer.Array(5);
    for (const std::int64_t number :
         AnswerThrottle(call.decisions.front(), *call.inline_quota, pending.quantity)) {
      writer.Integer(number);
    }
    return;
  }
  const Answer answer = call.answer();
  const Decision& decision = *answer.governing;  // A command names one rule.
  if (pending.form == RespPending::Form::kDone) {
    if (decision.decided_by == DecidedBy::kClosed) {
      return writer.Error(
          "UNAVAILABLE the store did not answer, and the rule is `closed`: try again");
    }
    return writer.Integer(call.done == Done::kApplied ? 1 : 0);
  }
  const bool map = pending.form == RespPending::Form::kMap;
  (map ? WriteMap : WriteNumbers)(writer, decision, answer.allowed);
}

}  // namespace tidegate

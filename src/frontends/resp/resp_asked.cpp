// SPDX-License-Identifier: Apache-2.0
#include "frontends/resp/resp_asked.hpp"

#include <chrono>
#include <string>

#include "frontends/answer.hpp"
#include "frontends/resp/throttle.hpp"

namespace tidegate {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

std::int64_t Millis(Micros duration) noexcept { return ceil<milliseconds>(duration).count(); }

/// `limit` and its like are -1 where nothing was counted: nobody knows them.
void WriteNumbers(RespWriter& writer, const Decision& decision, bool allowed, bool counted) {
  writer.Array(6);
  writer.Integer(allowed ? 0 : 1);
  writer.Integer(counted ? decision.limit : -1);
  writer.Integer(counted ? decision.remaining : -1);
  writer.Integer(allowed || decision.never ? -1 : Millis(decision.retry_after));
  writer.Integer(counted ? Millis(decision.reset_after) : -1);
  writer.Text(Name(decision.decided_by));
}

/// The members of the JSON, and present where they are present there.
void WriteMap(RespWriter& writer, const Decision& decision, bool allowed, bool counted) {
  const bool waits = !allowed && !decision.never;
  writer.Map(3u + (counted ? 3u : 0u) + (allowed ? 0u : 1u));
  writer.Text("allowed");
  writer.Bool(allowed);
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
  } else if (!allowed) {
    writer.Text("never");
    writer.Bool(true);
  }
  if (counted) {
    writer.Text("reset_after_ms");
    writer.Integer(Millis(decision.reset_after));
  }
  writer.Text("decided_by");
  writer.Text(Name(decision.decided_by));
}

}  // namespace

void RespAsked::Clear() noexcept {
  connection = nullptr;
  next = nullptr;
  policy.reset();
  ready = false;
  refusal.clear();
  rule = nullptr;
  settled = Settled::kNo;
  kept.reset();
  refund = {};
  error.reset();
  record = {};
  memory.release();
}

void RespAsked::CountSettled(Tally& tally) const noexcept {
  if (settled == Settled::kBanned) return tally.CountBanned(slot(), charge);
  tally.CountExempted(slot());
}

void RespAsked::Write(RespWriter& writer) const {
  if (!refusal.empty()) return writer.Error(refusal);
  if (error) return writer.Error("ERR " + error->message);
  if (form == Form::kThrottle) {
    writer.Array(5);
    for (const std::int64_t number : AnswerThrottle(decision, *quota, quantity)) {
      writer.Integer(number);
    }
    return;
  }
  const Answer answer = AnswerOf(*this);
  const bool counted = decision.decided_by != DecidedBy::kOpen &&
                       decision.decided_by != DecidedBy::kClosed && settled == Settled::kNo;
  if (form == Form::kDone) {
    if (decision.decided_by == DecidedBy::kClosed) {
      return writer.Error(
          "UNAVAILABLE the store cannot be reached, and the rule is closed then: try again");
    }
    return writer.Integer(done == Done::kApplied ? 1 : 0);
  }
  const bool map = writer.version() >= 3;
  (map ? WriteMap : WriteNumbers)(writer, decision, answer.allowed, counted);
}

}  // namespace tidegate

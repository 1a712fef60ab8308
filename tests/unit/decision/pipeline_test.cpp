// SPDX-License-Identifier: Apache-2.0
// The decision pipeline on a store that answers when the test lets it. Under the address sanitizer
// a test fails if a call is used after it was freed, or is never freed.
#include "decision/pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "service/late_store.hpp"

namespace tidegate {
namespace {

using service::LatePipeline;
using service::SnapshotOf;
using namespace std::chrono_literals;

constexpr std::string_view kConfig = R"(
rules:
  - { id: r, per: header:x-api-key, limit: 2/m }
  - { id: leases, per: header:x-api-key, algorithm: concurrency, limit: 1/m }
)";

/// Collects the calls that were decided. The test drops them.
class Answers final : public DecisionListener {
 public:
  void OnDecided(DecisionCall& call) noexcept override { all.push_back(&call); }
  std::vector<DecisionCall*> all;
};

class PipelineTest : public testing::Test {
 protected:
  /// Returns a call for one key of a rule. The strings that the call is made from are destroyed
  /// when Ask() returns.
  DecisionCall& Ask(const std::string& rule, const std::string& identity,
                    const std::string& lease = {}) {
    DecisionCall& call = late_.pipeline.Begin();
    const std::vector<NamedValue> values{{{}, identity}};
    const auto access = call.snapshot().rules->Resolve(
        {rule, values, std::nullopt, call.Keep(lease)}, {late_.pipeline.overrides().get()},
        call.matched, call.memory());
    EXPECT_TRUE(access.has_value());
    call.access = *access;
    return call;
  }
  /// Sets an operator's override for one key of rule `r`.
  void Give(Override::Kind kind, const std::string& identity, std::optional<Micros> left = {}) {
    DecisionCall& call = Ask("r", identity);
    OverrideTable::Entry entry;
    entry.what.kind = kind;
    entry.what.rule = "r";
    entry.what.identity = call.matched.charges.front().identity;
    if (left) entry.until = late_.clock.Now() + *left;
    call.Drop();
    late_.pipeline.Use(OverrideTable::Make({entry}, late_.clock));
  }
  [[nodiscard]] std::uint64_t Counted(DecisionCounters::Outcome outcome, DecidedBy source) const {
    std::uint64_t count = 0;
    late_.metrics.counters().Each(late_.pipeline.snapshot()->slots[0],
                                  [&](auto which, auto decided_by, std::uint64_t n) {
                                    if (which == outcome && decided_by == source) count += n;
                                  });
    return count;
  }
  [[nodiscard]] std::uint64_t Timed() const {
    std::uint64_t times = 0;
    for (std::size_t i = 0; i <= DecisionLatency::kBuckets; ++i) {
      times += late_.metrics.latency().count(i);
    }
    return times;
  }

  LatePipeline late_{kConfig};
  Answers answers_;
  using Outcome = DecisionCounters::Outcome;
};

TEST_F(PipelineTest, CountsAndMeasuresEachDecisionOnce) {
  for (int i = 0; i < 3; ++i) Ask("r", "a").Start(&answers_);
  EXPECT_TRUE(answers_.all.empty());
  late_.store.FinishAll();
  ASSERT_EQ(answers_.all.size(), 3u);
  EXPECT_EQ(answers_.all[0]->answer().status(), 200);
  EXPECT_EQ(answers_.all[2]->answer().status(), 429);
  for (DecisionCall* const call : answers_.all) call->Drop();
  EXPECT_EQ(Counted(Outcome::kAllowed, DecidedBy::kStore), 2u);
  EXPECT_EQ(Counted(Outcome::kDenied, DecidedBy::kStore), 1u);
  EXPECT_EQ(Timed(), 3u);
}

TEST_F(PipelineTest, DoesNotCountPeeksAndOperations) {
  for (const auto kind : {Call::Kind::kPeek, Call::Kind::kDebit, Call::Kind::kReset}) {
    DecisionCall& call = Ask("r", "a");
    call.kind = kind;
    call.Start(nullptr);
  }
  late_.store.FinishAll();
  EXPECT_EQ(Counted(Outcome::kAllowed, DecidedBy::kStore), 0u);
  EXPECT_EQ(Timed(), 0u);
}

TEST_F(PipelineTest, FreesDroppedCallWhenTheStoreReturnsIt) {
  DecisionCall& call = Ask("r", "a");
  call.Start(&answers_);
  call.Drop();  // A frontend drops a call when its client disconnects.
  late_.store.FinishAll();
  EXPECT_TRUE(answers_.all.empty());
  // The call was charged, so it is counted, although no listener waits for it.
  EXPECT_EQ(Counted(Outcome::kAllowed, DecidedBy::kStore), 1u);
  EXPECT_EQ(&late_.pipeline.Begin(), &call);  // The pool reuses the call.
  call.Drop();
}

TEST_F(PipelineTest, FreesCallThatWasNeverStarted) {
  DecisionCall& call = Ask("r", "a");
  call.Drop();
  EXPECT_EQ(late_.store.held, 0u);
}

TEST_F(PipelineTest, KeepsSnapshotOfCallInProgress) {
  std::weak_ptr<const Snapshot> old;
  {
    const auto snapshot = SnapshotOf(kConfig);
    old = snapshot;
    late_.pipeline.Use(snapshot);
  }
  Ask("r", "a").Start(&answers_);
  late_.pipeline.Use(SnapshotOf("rules: []"));
  EXPECT_FALSE(old.expired());
  late_.store.FinishAll();
  ASSERT_EQ(answers_.all.size(), 1u);
  EXPECT_EQ(answers_.all[0]->answer().governing->rule, "r");
  answers_.all[0]->Drop();
  EXPECT_TRUE(old.expired());
}

TEST_F(PipelineTest, DecidesBansAndAllowancesByOperator) {
  Give(Override::Kind::kBan, "a", 10s);
  Ask("r", "a").Start(&answers_);
  ASSERT_EQ(answers_.all.size(), 1u);  // The decision is made at once, without the store.
  Answer answer = answers_.all[0]->answer();
  ASSERT_NE(answer.governing, nullptr);
  EXPECT_EQ(answer.status(), 403);
  EXPECT_EQ(answer.governing->decided_by, DecidedBy::kOperator);
  EXPECT_EQ(answer.governing->reason, Reason::kBanned);
  EXPECT_EQ(answer.governing->rule, "r");
  EXPECT_GT(answer.governing->retry_after, 9s);
  answers_.all[0]->Drop();
  EXPECT_EQ(Counted(Outcome::kBanned, DecidedBy::kOperator), 1u);

  answers_.all.clear();
  Give(Override::Kind::kAllow, "a");
  Ask("r", "a").Start(&answers_);
  ASSERT_EQ(answers_.all.size(), 1u);
  answer = answers_.all[0]->answer();
  EXPECT_EQ(answer.status(), 200);
  EXPECT_TRUE(answer.exempt);
  EXPECT_EQ(answer.governing->decided_by, DecidedBy::kOperator);
  EXPECT_EQ(answer.governing->reason, Reason::kExempt);
  answers_.all[0]->Drop();
  EXPECT_EQ(Counted(Outcome::kExempted, DecidedBy::kOperator), 1u);
  EXPECT_EQ(Timed(), 0u);
}

TEST_F(PipelineTest, CountsAllowanceBesideBan) {
  DecisionCall& call = late_.pipeline.Begin();
  const auto rules = call.snapshot().rules->rules();
  call.access = Access::kBanned;
  call.matched.ban = {&rules[1], "header:x-api-key=b", std::nullopt};
  call.matched.exempted.push_back(&rules[0]);
  call.Start(nullptr);
  EXPECT_EQ(Counted(Outcome::kExempted, DecidedBy::kOperator), 1u);
}

TEST_F(PipelineTest, ReusedCallDoesNotKeepBan) {
  Give(Override::Kind::kBan, "a");
  DecisionCall& banned = Ask("r", "a");
  banned.Start(&answers_);
  banned.Drop();
  DecisionCall& next = late_.pipeline.Begin();
  ASSERT_EQ(&next, &banned);
  next.Start(&answers_);  // No rule matched.
  EXPECT_EQ(next.answer().governing, nullptr);
  EXPECT_EQ(next.answer().status(), 200);
  next.Drop();
}

TEST_F(PipelineTest, ReleaseOutlivesTheCallThatAcquiredTheLease) {
  DecisionCall& decided = Ask("leases", "a", "lease-1");
  decided.Start(&answers_);
  late_.store.FinishAll();
  ASSERT_EQ(answers_.all.size(), 1u);
  ASSERT_TRUE(decided.allowed);
  DecisionCall& release = late_.pipeline.BeginAfter(decided, Call::Kind::kRelease);
  release.AddCopy(decided, 0, 1);
  decided.Drop();
  late_.pipeline.Use(SnapshotOf("rules: []"));
  release.Start(nullptr);
  late_.store.FinishAll();
  late_.pipeline.Use(SnapshotOf(kConfig));
  answers_.all.clear();
  DecisionCall& again = Ask("leases", "a", "lease-2");
  again.Start(&answers_);
  late_.store.FinishAll();
  EXPECT_TRUE(again.allowed);  // The first lease was released.
  again.Drop();
}

TEST_F(PipelineTest, AllowsStartingCallAgainAfterItsDecision) {
  DecisionCall& call = Ask("leases", "a", "lease-1");
  call.Start(&answers_);
  late_.store.FinishAll();
  call.kind = Call::Kind::kRenew;
  call.Start(&answers_);
  late_.store.FinishAll();
  EXPECT_EQ(call.applied, Applied::kYes);
  call.kind = Call::Kind::kRelease;
  call.Start(&answers_);
  late_.store.FinishAll();
  EXPECT_EQ(call.applied, Applied::kYes);
  EXPECT_EQ(answers_.all.size(), 3u);
  call.Drop();
}

TEST_F(PipelineTest, DecidesMoreChargesThanFitInTheCall) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 20; ++i) {
    yaml += "  - { id: r" + std::to_string(i) + ", per: client_ip, limit: 10/m }\n";
  }
  late_.pipeline.Use(SnapshotOf(yaml));
  DecisionCall& call = late_.pipeline.Begin();
  RequestView view;
  view.method = "GET";
  view.path = "/";
  view.client = *Address::Parse("192.0.2.1");
  view.has_client = true;
  const auto access =
      call.snapshot().rules->Match(view, std::nullopt, {}, {}, call.matched, call.memory());
  ASSERT_TRUE(access.has_value());
  call.Start(&answers_);
  late_.store.FinishAll();
  ASSERT_EQ(call.answer().decisions.size(), 20u);
  for (const Decision& decision : call.answer().decisions) EXPECT_EQ(decision.remaining, 9);
  call.Drop();
}

}  // namespace
}  // namespace tidegate

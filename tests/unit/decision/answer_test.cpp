// SPDX-License-Identifier: Apache-2.0
#include "decision/answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <memory>
#include <random>
#include <string>

#include "store/store.hpp"

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
namespace json = boost::json;

Quota QuotaOf(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

// --- more_after, the source of `t` in RateLimit fields --------------------------

/// One key, and a clock that the test moves.
struct Key {
  explicit Key(const QuotaSpec& spec) : quota(QuotaOf(spec)) {}

  [[nodiscard]] Charge Of(std::int64_t cost) const {
    return {.rule = "r", .identity = "i", .quota = &quota, .cost = cost};
  }
  [[nodiscard]] std::int64_t RemainingAt(Time time) {
    clock.Set(time);
    return store->Peek(Of(1)).value().remaining;
  }

  Quota quota;
  ManualClock clock;
  std::unique_ptr<Store> store = NewMemoryStore({.max_keys = 1000, .clock = &clock});
};

/// Expects that `more_after` is exact: more units remain after that time, but not one microsecond
/// earlier.
void ExpectExact(Key& key, const Decision& decision, std::string_view what) {
  const Micros more = decision.more_after;
  const Time now = key.clock.Now();
  if (more == 0us) {
    EXPECT_EQ(decision.remaining, key.quota.capacity()) << what;
    return;
  }
  EXPECT_GT(key.RemainingAt(now + more), decision.remaining) << what << " " << more.count();
  EXPECT_LE(key.RemainingAt(now + more - 1us), decision.remaining) << what << " " << more.count();
  key.clock.Set(now);
  // WIRE.md: Retry-After must not be earlier than `t`.
  if (!decision.allowed && !decision.never) {
    EXPECT_LE(more, decision.retry_after) << what;
  }
}

class MoreAfterTest : public testing::TestWithParam<Algorithm> {};

TEST_P(MoreAfterTest, MoreAfterIsFirstMomentWithMoreRemaining) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  constexpr std::array<std::int64_t, 8> kPeriods{1,       7,         1'000,         99'991,
                                                 999'983, 1'000'000, 3'600'000'000, 86'400'000'000};
  for (int round = 0; round < 300; ++round) {
    const std::int64_t limit = pick(0, 1) == 0 ? pick(1, 10) : pick(1, 5000);
    QuotaSpec spec{.algorithm = GetParam(),
                   .limit = limit,
                   .period = Micros{kPeriods[static_cast<std::size_t>(pick(0, 7))]}};
    const bool bucket = GetParam() == Algorithm::kTokenBucket || GetParam() == Algorithm::kGcra;
    if (bucket) spec.burst = pick(1, 2 * limit);
    Key key(spec);
    for (int step = 0; step < 20; ++step) {
      key.clock.Advance(Micros{pick(0, 2 * key.quota.recovery().count() / 10 + 3)});
      const std::int64_t cost = pick(1, std::max<std::int64_t>(1, key.quota.capacity()));
      const bool debit = bucket && pick(0, 9) == 0;
      const Decision decision =
          debit ? key.store->Debit(key.Of(cost)).value() : key.store->Apply(key.Of(cost)).value();
      ExpectExact(key, decision,
                  "limit " + std::to_string(spec.limit) + " period " +
                      std::to_string(spec.period.count()) + " burst " + std::to_string(spec.burst));
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, MoreAfterTest,
                         testing::Values(Algorithm::kTokenBucket, Algorithm::kGcra,
                                         Algorithm::kFixedWindow, Algorithm::kSlidingWindow,
                                         Algorithm::kSlidingLog),
                         [](const auto& of) { return std::string(Name(of.param)); });

// --- Rendering ----------------------------------------------------------------

class DecisionRenderTest : public testing::Test {
 protected:
  Answer Of(std::span<const Decision> decisions, bool allowed) {
    const std::span<const Charge> charges(charges_.data(), decisions.size());
    return {.allowed = allowed,
            .applied = {},
            .charges = charges,
            .decisions = decisions,
            .governing = &Governing(charges, decisions),
            .shown = &Governing(charges, decisions)};
  }
  static std::string Fields(const Answer& answer, const Config::Responses& responses = {},
                            Micros jitter = 0us) {
    net::OutBuffer out;
    WriteAnswerFields(out, answer, answer.status(), responses, jitter);
    return std::string(out.view());
  }
  static json::object Json(const Answer& answer) {
    net::OutBuffer out;
    WriteAnswerJson(out, answer, answer.status());
    return json::parse({out.view().data(), out.view().size()}).as_object();
  }

  const Quota quota_ = QuotaOf({.limit = 10, .period = 1s});
  std::array<Charge, 2> charges_{{{.rule = "a", .identity = "i", .quota = &quota_},
                                  {.rule = "b", .identity = "i", .quota = &quota_}}};
};

TEST_F(DecisionRenderTest, OmitsRetryAfterOfAllowedRequestThatShadowRuleDenies) {
  charges_[0].mode = Mode::kShadow;
  for (const bool never : {false, true}) {
    const std::array<Decision, 1> decisions{
        {{.never = never, .limit = 10, .retry_after = 5s, .reset_after = 6s, .rule = "a"}}};
    const Answer answer = Of(decisions, true);
    const json::object body = Json(answer);
    EXPECT_TRUE(body.at("allowed").as_bool());
    EXPECT_FALSE(body.contains("retry_after_ms"));
    EXPECT_FALSE(body.contains("never"));
    EXPECT_EQ(body.at("reset_after_ms"), 6000);
    const json::object& rule = body.at("rules").as_array()[0].as_object();
    EXPECT_FALSE(rule.at("allowed").as_bool());
    EXPECT_EQ(rule.contains("never"), never);
    EXPECT_EQ(rule.contains("retry_after_ms"), !never);
    EXPECT_THAT(Fields(answer), Not(HasSubstr("Retry-After")));
  }
}

TEST_F(DecisionRenderTest, RoundsDurationsUp) {
  const std::array<Decision, 1> decisions{
      {{.limit = 10, .retry_after = 1'000'001us, .reset_after = 1us, .rule = "a"}}};
  const Answer answer = Of(decisions, false);
  EXPECT_EQ(Json(answer).at("retry_after_ms"), 1001);
  EXPECT_EQ(Json(answer).at("reset_after_ms"), 1);
  EXPECT_THAT(Fields(answer), HasSubstr("Retry-After: 2\r\n"));
}

// A debit is applied to each rule separately. A shadow rule whose store did not answer must not
// make the operation fail.
TEST_F(DecisionRenderTest, ClosedShadowRuleDoesNotFailAnOperation) {
  std::array<Decision, 2> decisions{
      {{.decided_by = DecidedBy::kClosed, .retry_after = 1s, .rule = "a"},
       {.allowed = true, .limit = 10, .remaining = 9, .rule = "b"}}};
  for (const Mode mode : {Mode::kEnforce, Mode::kShadow}) {
    charges_[0].mode = mode;
    Call call;
    call.kind = Call::Kind::kDebit;
    call.charges = charges_;
    call.decisions = decisions;
    call.allowed = true;
    EXPECT_EQ(AnswerOf(call).status(), mode == Mode::kEnforce ? 503 : 200);
  }
}

TEST_F(DecisionRenderTest, AddsJitterBeforeRounding) {
  const std::array<Decision, 1> decisions{{{.limit = 10, .retry_after = 1500ms, .rule = "a"}}};
  EXPECT_THAT(Fields(Of(decisions, false), {}, 500ms), HasSubstr("Retry-After: 2\r\n"));
  EXPECT_THAT(Fields(Of(decisions, false), {}, 501ms), HasSubstr("Retry-After: 3\r\n"));
}

TEST_F(DecisionRenderTest, AddsNoJitterToBans) {
  const Decision ban{.decided_by = DecidedBy::kOperator,
                     .reason = Reason::kBanned,
                     .retry_after = 1500ms,
                     .rule = "a"};
  Answer answer{.allowed = false, .denied = true, .applied = {}, .charges = {}, .decisions = {}};
  answer.governing = answer.shown = &ban;
  EXPECT_EQ(answer.status(), 403);
  EXPECT_THAT(Fields(answer, {}, 1h), HasSubstr("Retry-After: 2\r\n"));
}

TEST_F(DecisionRenderTest, RendersStoreFailureUnderClosedPolicyAs503) {
  const std::array<Decision, 1> decisions{{{.decided_by = DecidedBy::kClosed,
                                            .reason = Reason::kTimeout,
                                            .limit = 10,
                                            .retry_after = 1s,
                                            .rule = "a"}}};
  const Answer answer = Of(decisions, false);
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(Json(answer).at("type"),
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
  EXPECT_EQ(Json(answer).at("decided_by"), "closed");
  EXPECT_EQ(Json(answer).at("reason"), "timeout");
  EXPECT_EQ(Json(answer).at("retry_after_ms"), 1000);
  for (const char* const number : {"limit", "remaining", "reset_after_ms"}) {
    EXPECT_FALSE(Json(answer).contains(number)) << number;
  }
  const Config::Responses all{.ratelimit_legacy = true, .x_ratelimit = true};
  EXPECT_THAT(Fields(answer, all), Not(HasSubstr("RateLimit")));
  EXPECT_THAT(Fields(answer), HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(Fields(answer), HasSubstr("X-Tidegate-Decided-By: closed\r\n"));
}

TEST_F(DecisionRenderTest, OmitsRateLimitFieldsOfOpenDecision) {
  const std::array<Decision, 1> decisions{{{.allowed = true,
                                            .decided_by = DecidedBy::kOpen,
                                            .reason = Reason::kBreakerOpen,
                                            .limit = 10,
                                            .remaining = 9,
                                            .rule = "a"}}};
  const Config::Responses all{.ratelimit_legacy = true, .x_ratelimit = true};
  EXPECT_THAT(Fields(Of(decisions, true), all), Not(HasSubstr("RateLimit")));
  EXPECT_EQ(json::serialize(Json(Of(decisions, true))),
            R"({"allowed":true,"rule":"a","decided_by":"open","reason":"breaker_open",)"
            R"("rules":[{"rule":"a","mode":"enforce","allowed":true}]})");
}

TEST_F(DecisionRenderTest, ShowsDecidedByOfRulesThatDifferFromGoverningRule) {
  const Decision local{.allowed = true,
                       .decided_by = DecidedBy::kLocal,
                       .reason = Reason::kTimeout,
                       .limit = 5,
                       .remaining = 4,
                       .reset_after = 1s,
                       .rule = "a"};
  const Decision open{.allowed = true,
                      .decided_by = DecidedBy::kOpen,
                      .reason = Reason::kQueueFull,
                      .limit = 10,
                      .rule = "b"};
  const std::array<Decision, 2> passed{local, open};
  EXPECT_EQ(json::serialize(Json(Of(passed, true))),
            R"({"allowed":true,"rule":"a","limit":5,"remaining":4,"reset_after_ms":1000,)"
            R"("decided_by":"local","reason":"timeout","rules":[{"rule":"a","mode":"enforce",)"
            R"("allowed":true,"limit":5,"remaining":4,"reset_after_ms":1000},{"rule":"b",)"
            R"("mode":"enforce","allowed":true,"decided_by":"open","reason":"queue_full"}]})");
  EXPECT_THAT(Fields(Of(passed, true)), HasSubstr("RateLimit-Policy: \"a\";q=10;w=1\r\n"));
  EXPECT_THAT(Fields(Of(passed, true)), HasSubstr("X-Tidegate-Decided-By: local\r\n"));

  const Decision closed{
      .decided_by = DecidedBy::kClosed, .limit = 10, .retry_after = 1s, .rule = "b"};
  const std::array<Decision, 2> refused{local, closed};
  const json::object body = Json(Of(refused, false));
  EXPECT_EQ(body.at("status"), 503);
  EXPECT_EQ(body.at("rule"), "b");
  EXPECT_EQ(json::serialize(body.at("rules")),
            R"([{"rule":"a","mode":"enforce","allowed":true,"limit":5,"remaining":4,)"
            R"("reset_after_ms":1000,"decided_by":"local","reason":"timeout"},)"
            R"({"rule":"b","mode":"enforce","allowed":false,"retry_after_ms":1000}])");
}

/// RateLimit-Policy must not begin with a comma if the first policy is not listed.
TEST_F(DecisionRenderTest, ListsOnlyPoliciesThatWereCounted) {
  const std::array<Decision, 2> decisions{
      {{.allowed = true, .decided_by = DecidedBy::kOpen, .rule = "a"},
       {.allowed = true, .limit = 10, .remaining = 9, .rule = "b"}}};
  EXPECT_EQ(Fields(Of(decisions, true)),
            "RateLimit-Policy: \"b\";q=10;w=1\r\nRateLimit: \"b\";r=9\r\n");
}

/// An operation is applied to each rule separately, so one closed rule makes it fail.
TEST_F(DecisionRenderTest, RendersOperationWithOneClosedRuleAs503) {
  std::array<Decision, 2> decisions{
      {{.allowed = true, .decided_by = DecidedBy::kLocal, .limit = 10, .remaining = 9, .rule = "a"},
       {.decided_by = DecidedBy::kClosed, .retry_after = 1s, .rule = "b"}}};
  for (const auto kind : {Call::Kind::kDebit, Call::Kind::kRefund, Call::Kind::kReset,
                          Call::Kind::kRenew, Call::Kind::kRelease}) {
    Call call;
    call.kind = kind;
    call.charges = charges_;
    call.decisions = decisions;
    call.allowed = true;
    const Answer answer = AnswerOf(call);
    EXPECT_EQ(answer.governing, &decisions[1]);
    EXPECT_FALSE(answer.allowed);
    EXPECT_THAT(Fields(answer), HasSubstr("Retry-After: 1\r\n"));
  }
}

/// A header field reports who decided, unless it was the store or the cache.
TEST_F(DecisionRenderTest, SendsDecidedByHeaderExceptForStoreAndCache) {
  for (const DecidedBy decided_by :
       {DecidedBy::kStore, DecidedBy::kCache, DecidedBy::kLocal, DecidedBy::kOpen}) {
    const std::array<Decision, 1> decisions{
        {{.allowed = true, .decided_by = decided_by, .limit = 10, .remaining = 9, .rule = "a"}}};
    const std::string fields = Fields(Of(decisions, true));
    if (decided_by == DecidedBy::kStore || decided_by == DecidedBy::kCache) {
      EXPECT_THAT(fields, Not(HasSubstr("X-Tidegate-Decided-By")));
    } else {
      EXPECT_THAT(fields,
                  HasSubstr("X-Tidegate-Decided-By: " + std::string(Name(decided_by)) + "\r\n"));
    }
  }
}

TEST_F(DecisionRenderTest, ListsOnlyEnforcingRulesThatDenyAsViolated) {
  charges_[1].mode = Mode::kShadow;
  const std::array<Decision, 2> decisions{{{.limit = 10, .retry_after = 1s, .rule = "a"},
                                           {.limit = 10, .retry_after = 9s, .rule = "b"}}};
  const json::object body = Json(Of(decisions, false));
  EXPECT_EQ(json::serialize(body.at("violated-policies")), R"(["a"])");
  EXPECT_EQ(body.at("rule"), "a");
}

}  // namespace
}  // namespace tidegate

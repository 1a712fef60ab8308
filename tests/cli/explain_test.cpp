// SPDX-License-Identifier: Apache-2.0
// The output of `tidegate explain` for given responses of a server.
#include "cli/commands.hpp"

#include <gmock/gmock.h>

#include "cli/command_case.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ExplainCommandTest : public cli_test::CommandCase {
 protected:
  std::string Explained(const std::string& answer, Colours colours = Colours::kOff) {
    const Console console{out_, err_, colours};
    std::string text = Printed(answer, [&](const ClientOptions& options) {
      return Explain({.client = options, .path = "/v1/x"}, console);
    });
    EXPECT_EQ(exit_, kOk) << Err();
    return text;
  }
};

/// Returns `{"rule":"NAME","matched":true,MORE}`.
std::string RuleJson(const std::string& name, const std::string& more) {
  return R"({"rule":")" + name + R"(","matched":true,"capacity":100,"mode":"enforce")" +
         (more.empty() ? "" : "," + more) + "}";
}

TEST_F(ExplainCommandTest, PrintsOtherRulesOfBannedRequestAsNotEvaluated) {
  const std::string output = Explained(
      R"({"allowed":false,"status":403,"outcome":"banned","rule":"a","rules":[)" +
      RuleJson("a", R"("override":{"kind":"ban","by":"alice"})") + "," + RuleJson("b", "") + "]}");
  EXPECT_THAT(output, StartsWith("would be denied (403): an operator banned the key\n"));
  EXPECT_THAT(output, HasSubstr("\na  banned by an operator\n"));
  EXPECT_THAT(output, HasSubstr("\nb  not evaluated\n"));
  EXPECT_THAT(output, Not(HasSubstr("denies")));
}

TEST_F(ExplainCommandTest, PrintsBanOfShadowRule) {
  const std::string output =
      Explained(R"({"allowed":false,"status":403,"outcome":"banned","rules":[)"
                R"({"rule":"s","matched":true,"mode":"shadow","override":{"kind":"ban"}}]})");
  EXPECT_THAT(output, HasSubstr("\ns  banned by an operator\n"));
  EXPECT_THAT(output, Not(HasSubstr("would deny")));
}

TEST_F(ExplainCommandTest, PrintsAllowanceOfOperator) {
  const std::string output =
      Explained(R"({"allowed":true,"status":200,"outcome":"uncounted","rules":[)" +
                RuleJson("a", R"("override":{"kind":"allow","by":"bob"})") + "]}");
  EXPECT_THAT(output, StartsWith("would be allowed (200): an operator allowed the key\n"));
  EXPECT_THAT(output, HasSubstr("\na  allows, uncounted: by an operator\n"));
  EXPECT_THAT(output, HasSubstr("  override  allow by bob; until lifted\n"));
}

TEST_F(ExplainCommandTest, UsesRedOnlyForDenials) {
  const std::string output =
      Explained(R"({"allowed":false,"outcome":"banned","rules":[)" +
                    RuleJson("a", R"("override":{"kind":"ban"})") + "," + RuleJson("b", "") + "," +
                    R"({"rule":"c","matched":true,"mode":"shadow","allowed":false}]})",
                Colours::kOn);
  EXPECT_THAT(output, HasSubstr("\x1b[31mbanned by an operator"));
  EXPECT_THAT(output, HasSubstr("\x1b[2mnot evaluated"));
  EXPECT_THAT(output, HasSubstr("\x1b[33mwould deny"))
      << "the denial of a shadow rule is not yellow";
}

TEST_F(ExplainCommandTest, PrintsThatTheStoreDoesNotAnswer) {
  const auto one = [&](const std::string& rule) {
    return Explained(R"({"allowed":true,"status":200,"outcome":"rules","rule":"a","rules":[)" +
                     RuleJson("a", rule) + "]}");
  };
  const std::string local = one(
      R"("allowed":true,"decided_by":"local","reason":"timeout","before":{"remaining":49,"of":50},"after":{"remaining":48})");
  EXPECT_THAT(local,
              StartsWith("would be allowed (200): rule a decides (the store does not answer)\n"));
  EXPECT_THAT(local,
              HasSubstr("\na  the store does not answer (timeout), and the policy is local: "
                        "allows by this node's share, 49 of 50 left, 48 after the request\n"));
  EXPECT_THAT(one(R"("allowed":true,"decided_by":"local","before":{"remaining":49})"),
              HasSubstr("by this node's share, 49 of 100 left\n"))
      << "a response of an older server, which has no number of nodes";
  EXPECT_THAT(
      one(R"("allowed":false,"decided_by":"closed","reason":"breaker_open","retry_after_ms":1000)"),
      HasSubstr("\na  the store does not answer (breaker_open), and the policy is closed: denies, "
                "try again in 1 s\n"));
  EXPECT_THAT(one(R"("allowed":true,"decided_by":"open")"),
              HasSubstr("\na  the store does not answer, and the policy is open: allows\n"))
      << "a response of an older server, which has no reason";
  for (const char* decided_by : {"store", "cache"}) {
    const std::string exact = one(R"("allowed":true,"before":{"remaining":7},"decided_by":")" +
                                  std::string(decided_by) + "\"");
    EXPECT_THAT(exact, HasSubstr("\na  allows: 7 of 100 left\n"));
    EXPECT_THAT(exact, Not(HasSubstr("does not answer")));
  }
}

TEST_F(ExplainCommandTest, PrintsNoStateAfterRequestDeniedByAnotherRule) {
  EXPECT_THAT(Explained(R"({"allowed":false,"status":429,"outcome":"rules","rule":"b","rules":[)" +
                        RuleJson("a", R"("allowed":true,"before":{"remaining":7},)"
                                      R"("after":{"remaining":7})") +
                        "]}"),
              HasSubstr("\na  allows: 7 of 100 left\n"));
}

TEST_F(ExplainCommandTest, PrintsOverrideFromConfiguration) {
  EXPECT_THAT(Explained(R"({"allowed":true,"outcome":"rules","rule":"a","rules":[)" +
                        RuleJson("a", R"("allowed":true,"override":{"kind":"quota",)"
                                      R"("from":"configuration","quota":"5000/s, burst 10000"})") +
                        "]}"),
              HasSubstr("  override  by the configuration: 5000/s, burst 10000\n"));
}

TEST_F(ExplainCommandTest, NamesEntryAsWrittenInConfiguration) {
  EXPECT_EQ(Explained(R"({"allowed":false,"status":403,"outcome":"deny","entry":0,"rules":[]})"),
            "would be denied (403): deny[0] rejects the request\n");
  EXPECT_EQ(Explained(R"({"allowed":true,"status":200,"outcome":"exempt","entry":2,"rules":[]})"),
            "would be allowed (200): exempt[2] lets the request pass uncounted\n");
  EXPECT_EQ(
      Explained(R"({"allowed":true,"status":200,"outcome":"exempt","preflight":true,"rules":[]})"),
      "would be allowed (200): exempt_preflights lets the request pass uncounted\n");
}

TEST_F(ExplainCommandTest, PrintsConditionsOfDenyEntry) {
  EXPECT_EQ(Explained(R"({"allowed":false,"status":403,"outcome":"deny","entry":0,)"
                      R"("entry_match":{"path":["/admin/**"],"header":{"x-team":"red*"}},)"
                      R"("rules":[]})"),
            "would be denied (403): deny[0] (/admin/** x-team: red*) rejects the request\n");
}

TEST_F(ExplainCommandTest, PrintsConcurrencyLimitInsteadOfRate) {
  EXPECT_THAT(Explained(R"({"allowed":true,"outcome":"rules","rule":"a","rules":[)" +
                        RuleJson("a", R"("allowed":true,"algorithm":"concurrency","cost":1,)"
                                      R"("limit":"2/30s","quota":"2 at once, lease 30s")") +
                        "]}"),
              HasSubstr("  quota  2 at once, lease 30s (concurrency), cost 1\n"));
}

TEST_F(ExplainCommandTest, WarnsThatPathLooksLikePattern) {
  const auto note = [&](const char* path) {
    err_.str("");
    EXPECT_EQ(Explain({.client = To(fake_), .path = path}, console_), kOk);
    return Err();
  };
  for (const char* const path : {"/users/{id}", "/users/:id", "/v1/**", "^/api/.*$", "/u/<id>"}) {
    EXPECT_THAT(note(path), HasSubstr("`" + std::string(path) + "` looks like a pattern")) << path;
  }
  EXPECT_EQ(note("/v1/x?a=[1]"), "");
}

TEST_F(ExplainCommandTest, PrintsThatNoRouteMatches) {
  EXPECT_EQ(
      Explained(R"({"allowed":true,"status":404,"outcome":"uncounted","route":null,"rules":[]})"),
      "would pass the rules, but no route matches the request (404): no rule counts the request\n");
}

}  // namespace
}  // namespace tidegate::cli

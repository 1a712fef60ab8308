// SPDX-License-Identifier: Apache-2.0
// The output of the list commands and of `status`, for responses with and without optional members.
#include <gmock/gmock.h>

#include "cli/command_case.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ListCommandsTest : public cli_test::CommandCase {
 protected:
  std::string Overrides(const std::string& answer) {
    return Good(Printed(
        answer, [&](const ClientOptions& options) { return ListOverrides(options, console_); }));
  }
  std::string Status(const std::string& answer) {
    return Good(Printed(
        answer, [&](const ClientOptions& options) { return cli::Status(options, console_); }));
  }
  std::string Rules(const std::string& answer) {
    return Good(Printed(
        answer, [&](const ClientOptions& options) { return ListRules(options, console_); }));
  }
  std::string Audit(const std::string& answer) {
    return Good(Printed(answer, [&](const ClientOptions& options) {
      return ListAudit({options, 2}, console_);
    }));
  }
  std::string Inspected(const std::string& answer) {
    return Good(Printed(answer, [&](const ClientOptions& options) {
      return Inspect({options, {.rule = "r", .identity = "a"}}, console_);
    }));
  }

 private:
  std::string Good(std::string printed) const {
    EXPECT_EQ(exit_, kOk) << Err();
    return printed;
  }
};

constexpr const char* kNone = "no operator has banned or allowed a key or changed its quota\n";

TEST_F(ListCommandsTest, PrintsAgeOfOverrides) {
  EXPECT_EQ(Overrides(R"({"overrides":[]})"), kNone)
      << "an age for the overrides of the memory store";
  EXPECT_EQ(Overrides(R"({"overrides":[],"age_ms":2999})"), kNone);
  EXPECT_EQ(Overrides(R"({"overrides":[],"age_ms":40000})"),
            std::string(kNone) + "as of 40 s ago\n");
  EXPECT_THAT(
      Overrides(R"({"overrides":[{"rule":"r","key":"k","kind":"ban","by":"a"}],"age_ms":40000})"),
      testing::EndsWith("\nas of 40 s ago\n"));
}

std::string AuditAnswer(const std::string& entries, const std::string& history) {
  return R"({"entries":[)" + entries + R"(],"history":{"since_ms":1700000000000,)" + history + "}}";
}

TEST_F(ListCommandsTest, AuditPrintsWhetherHistoryIsComplete) {
  const std::string nothing = "nothing was changed, and no authentication failed\n";
  EXPECT_EQ(Audit(R"({"entries":[]})"), nothing) << "a response of an older server";
  EXPECT_EQ(Audit(AuditAnswer("", R"("kept_in":"redis","complete":true)")),
            nothing + "complete since 2023-11-14 22:13:20Z\n");
  EXPECT_EQ(Audit(AuditAnswer("", R"("kept_in":"memory","complete":true)")),
            nothing +
                "kept in memory since the server started at 2023-11-14 22:13:20Z; earlier records "
                "are lost. The log of the server has the changes\n");
  const std::string entry = R"({"time_ms":1700000000000,"action":"ban","applied":true})";
  EXPECT_THAT(Audit(AuditAnswer(entry + "," + entry, R"("kept_in":"redis","complete":true)")),
              testing::EndsWith("\ncomplete since 2023-11-14 22:13:20Z; --limit lists more\n"));
}

TEST_F(ListCommandsTest, AuditPrintsMissingRecords) {
  EXPECT_EQ(Audit(AuditAnswer("", R"("kept_in":"redis","complete":false,"missing_changes":54,)"
                                  R"("missing_failures":1,"lost_ms":1700000060000)")),
            "no records\n"
            "records are missing: Redis lost some (noticed at 2023-11-14 22:14:20Z); "
            "54 changes and 1 failed authentication cannot be listed. The logs of the nodes have "
            "the changes\n");
  EXPECT_EQ(Audit(AuditAnswer("", R"("kept_in":"redis","complete":false,"missing_changes":1,)"
                                  R"("missing_failures":0)")),
            "no records\n"
            "older records are missing: only the latest are kept; 1 change and 0 failed "
            "authentications cannot be listed. The logs of the nodes have the changes\n");
}

TEST_F(ListCommandsTest, PrintsThatOverridesAreUnknown) {
  EXPECT_EQ(Overrides(R"({"overrides":[],"known":false})"),
            "not known: Redis has not answered since the start\n");
  const std::string status = Status(R"({"overrides":{"count":0,"known":false}})");
  EXPECT_THAT(status, HasSubstr("overrides   not known: Redis has not answered since the start\n"));
}

TEST_F(ListCommandsTest, StatusPrintsAgeOfOverrides) {
  EXPECT_THAT(Status(R"({"overrides":{"count":2}})"), HasSubstr("overrides   2\n"));
  EXPECT_THAT(Status(R"({"overrides":{"count":2,"age_ms":429}})"),
              HasSubstr("overrides   2, as of 429 ms ago\n"));
}

TEST_F(ListCommandsTest, StatusPrintsLastErrorOfStore) {
  const std::string down = R"("kind":"redis","breaker":"open","connected":0,"nodes":1)";
  EXPECT_THAT(Status("{\"store\":{" + down +
                     R"(,"last_error":{"reason":"wrongpass","message":"WRONGPASS\u001b no",)"
                     R"("age_ms":1234}}})"),
              HasSubstr("            last error wrongpass 1 s ago: WRONGPASS\\x1b no\n"));
  EXPECT_THAT(Status("{\"store\":{" + down + "}}"), Not(HasSubstr("last error")));
}

TEST_F(ListCommandsTest, StatusPrintsThatTooFewCallsWereMeasured) {
  EXPECT_THAT(Status(R"({"decisions":{"allowed":3},"latency":{"count":0,"buckets":[[null,0]]}})"),
              HasSubstr("latency     too few samples yet\n"));
  EXPECT_THAT(Status(R"({"decisions":{"allowed":0},"latency":{"count":0,"buckets":[[null,0]]}})"),
              HasSubstr("latency     no answers yet\n"));
}

TEST_F(ListCommandsTest, RulesPrintsBothKindsOfOverrides) {
  EXPECT_THAT(Rules(R"({"rules":[{"rule":"a","overrides":1,"configured_overrides":2,"per":"p"}]})"),
              HasSubstr("  1 + 2 configured  p"));
  EXPECT_THAT(Rules(R"({"rules":[{"rule":"a","overrides":1,"configured_overrides":0,"per":"p"}]})"),
              HasSubstr("  1  p"));
}

TEST_F(ListCommandsTest, InspectPrintsCostAboveOne) {
  const auto now = [&](const std::string& cost) {
    return Inspected(R"({"rule":"r","allowed":false,"remaining":3,"capacity":100,"tracked":true)" +
                     cost + "}");
  };
  EXPECT_THAT(now(R"(,"cost":5)"), HasSubstr("denied at cost 5, 3 of 100 left\n"));
  EXPECT_THAT(now(R"(,"cost":1)"), HasSubstr("denied, 3 of 100 left\n"));
  EXPECT_THAT(now(""), HasSubstr("denied, 3 of 100 left\n"));
}

TEST_F(ListCommandsTest, InspectPrintsOverrideFromConfiguration) {
  EXPECT_THAT(Inspected(R"({"rule":"r","allowed":true,"override":{"kind":"quota",)"
                        R"("from":"configuration","quota":"5000/s, burst 10000"}})"),
              HasSubstr("override  by the configuration: 5000/s, burst 10000\n"));
}

}  // namespace
}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
// A real Prometheus with the rules that are deployed, on nodes to which everything happens that the
// alerts are there for: whatever is asked of it, by rules, alerts or the dashboard, has an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <set>

#include "metrics/dashboard.hpp"
#include "metrics/deployed.hpp"
#include "metrics/estate.hpp"
#include "metrics/prometheus.hpp"
#include "unit/telemetry/text_format.hpp"

namespace tidegate::metrics_test {
namespace {

using namespace std::chrono_literals;
using redis_test::Soon;
using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

/// Whom an alert has to be about.
struct Expected {
  std::string_view alert;
  redis_test::Node& (Estate::*node)() noexcept;  ///< nullptr: the one that is gone.
};
constexpr Expected kExpected[] = {
    {"TidegateDown", nullptr},
    {"TidegateFailClosed", &Estate::front},
    {"TidegateFailOpen", &Estate::front},
    {"TidegateFailLocal", &Estate::front},
    {"TidegateBreakerOpen", &Estate::orphan},
    {"TidegateRedisErrors", &Estate::front},
    {"TidegateStoreSlow", &Estate::slow},
    {"TidegateServerErrors", &Estate::front},
    {"TidegateReloadRefused", &Estate::front},
    {"TidegateStoreOverflow", &Estate::small},
    {"TidegateStoreNearlyFull", &Estate::small},
    {"TidegateKeyMismatch", &Estate::slow},
    {"TidegateQueueNearlyFull", &Estate::slow},
    {"TidegateConnectionsShed", &Estate::front},
    {"TidegateHotKey", &Estate::front},
    {"TidegateNoUpstreamTarget", &Estate::front},
    {"TidegateOverridesStale", &Estate::orphan},
    {"TidegateStateHealed", &Estate::front},
    {"TidegateStateRepaired", &Estate::front},
    {"TidegateDescriptorsNearlyGone", &Estate::small},
};

class PrometheusTest : public testing::Test {
 protected:
  [[nodiscard]] Estate::Seen Sees(std::string expression) {
    return [this, expression = std::move(expression),
            next = std::chrono::steady_clock::time_point{}]() mutable {
      // Not more often than there can be something new.
      const auto now = std::chrono::steady_clock::now();
      if (now < next) return false;
      next = now + 100ms;
      return prometheus_.True(expression);
    };
  }
  [[nodiscard]] static std::string Of(const redis_test::Node& node, std::string_view more = {}) {
    return "{instance=\"" + Estate::Instance(node) + "\"" + std::string(more) + "}";
  }
  void Suffer();
  void CheckDecisions();
  void CheckRules();
  void CheckAlerts();
  void CheckDashboard();
  void CheckDocumented();

  Estate estate_;
  Prometheus prometheus_{estate_.folder(), ScrapeConfig(estate_.Targets(), estate_.token())};
};

void PrometheusTest::Suffer() {
  const redis_test::Node& front = estate_.front();
  // All is well first: every node has been looked at before anything rises.
  EXPECT_TRUE(Soon(
      Sees("count(count_over_time(up[10s]) > 1) == " + std::to_string(estate_.Targets().size()))));
  for (const std::string_view decided_by : {"store", "cache"}) {
    EXPECT_TRUE(Soon(Sees("tidegate_decisions_total" +
                          Of(front, ",decided_by=\"" + std::string(decided_by) + "\""))))
        << decided_by;
  }
  // One shard may be full before the others are.
  EXPECT_TRUE(estate_.Overflow(Sees("increase(tidegate_store_overflowed_total" +
                                    Of(estate_.small()) + "[10s]) > 0 and tidegate_store_entries" +
                                    Of(estate_.small()) + " / tidegate_store_max_entries > 0.95")));
  EXPECT_TRUE(estate_.FillQueue(Sees("increase(tidegate_failures_total" +
                                     Of(estate_.slow(), ",reason=\"queue_full\"") + "[10s]) > 0")));
  EXPECT_TRUE(estate_.CrowdGateway(Sees("increase(tidegate_connections_shed_total" +
                                        Of(front, ",door=\"gateway\"") + "[10s]) > 0")));
  EXPECT_TRUE(estate_.Corrupt(Sees("increase(tidegate_state_healed_total" + Of(front) +
                                   "[10s]) > 0 and increase(tidegate_state_repaired_total" +
                                   Of(front) + "[10s]) > 0")));
  EXPECT_TRUE(
      estate_.RefuseReload(Sees("tidegate_config_last_reload_successful" + Of(front) + " == 0")));
  EXPECT_TRUE(estate_.Change(Sees(
      "increase(tidegate_admin_changes_total" + Of(front, ",action=\"override\"") +
      "[10s]) > 0 and on (instance) tidegate_decisions_total" + Of(front, ",outcome=\"banned\"") +
      " and on (instance) tidegate_decisions_total" + Of(front, ",outcome=\"exempted\""))));
  EXPECT_TRUE(estate_.ExhaustMemory(
      Sees("increase(tidegate_redis_errors_total" + Of(front, ",kind=\"oom\"") + "[10s]) > 0")));
  EXPECT_TRUE(
      estate_.Garble(Sees("increase(tidegate_failures_total" +
                          Of(estate_.slow(), ",reason=~\"badresponse|badtypes\"") + "[10s]) > 0")));
  std::string outage = "tidegate_redis_breaker_state" + Of(front) + " > 0";
  for (const std::string_view decided_by : {"open", "closed", "local"}) {
    outage += " and on (instance) increase(tidegate_decisions_total" +
              Of(front, ",decided_by=\"" + std::string(decided_by) + "\"") + "[10s]) > 0";
  }
  EXPECT_TRUE(estate_.Outage(Sees(outage)));
  EXPECT_TRUE(estate_.TakeDescriptors(
      Sees("process_open_fds" + Of(estate_.small()) + " / process_max_fds > 0.8")));
  EXPECT_TRUE(Soon(Sees("tidegate_fleet_key_mismatches" + Of(estate_.slow()) + " > 0")));
  // As long as one must have known nothing of overrides.
  EXPECT_TRUE(Soon(Sees("tidegate_overrides_age_seconds" + Of(estate_.orphan()) + " > 30"), 40s));
}

/// Every outcome, decided_by and reason occurred.
void PrometheusTest::CheckDecisions() {
  const auto occurred = [&](std::string_view metric, std::string_view label,
                            std::string_view value) {
    const std::string series =
        std::string(metric) + "{" + std::string(label) + "=\"" + std::string(value) + "\"}";
    EXPECT_TRUE(prometheus_.SinceStart(series + " > 0").HasData()) << series;
  };
  for (const char* const outcome :
       {"allowed", "denied", "shadow_allowed", "shadow_denied", "banned", "exempted"}) {
    occurred("tidegate_decisions_total", "outcome", outcome);
  }
  for (const char* const decided_by : {"store", "cache", "local", "open", "closed", "operator"}) {
    occurred("tidegate_decisions_total", "decided_by", decided_by);
  }
  for (const char* const reason : {"rediserror", "timeout", "breaker_open", "queue_full"}) {
    occurred("tidegate_failures_total", "reason", reason);
  }
  // Which of the two it is depends on where the bytes are wrong.
  EXPECT_TRUE(
      prometheus_.SinceStart("tidegate_failures_total{reason=~\"badresponse|badtypes\"} > 0")
          .HasData());
}

void PrometheusTest::CheckRules() {
  int asked = 0;
  for (const RunningRule& rule : prometheus_.Rules()) {
    EXPECT_EQ(rule.problem, "") << rule.name;
    ++asked;
    const auto answer = prometheus_.SinceStart(rule.alerting ? rule.expression : rule.name);
    EXPECT_EQ(answer.problem, "") << rule.name;
    EXPECT_TRUE(answer.HasData()) << rule.name << " has nothing: " << rule.expression;
  }
  EXPECT_GT(asked, 30) << "nothing was looked at";
}

void PrometheusTest::CheckDashboard() {
  const Dashboard board = Dashboard::Read(ReadFile(DeployFolder() / "grafana/tidegate.json"));
  EXPECT_THAT(board.problems, IsEmpty());
  EXPECT_THAT(board.variables, SizeIs(3));
  for (const auto& variable : board.variables) {
    EXPECT_THAT(prometheus_.LabelValues(variable.label, variable.selector), testing::Not(IsEmpty()))
        << variable.name;
  }
  int asked = 0;
  for (const auto& target : board.targets) {
    ++asked;
    const auto answer = prometheus_.SinceStart(target.expression);
    EXPECT_EQ(answer.problem, "") << target.panel;
    EXPECT_TRUE(answer.HasData()) << target.panel << " has nothing: " << target.expression;
  }
  EXPECT_GT(asked, 90) << "nothing was looked at";
}

/// Each is about the node that it happened to, and none about the one that is well.
void PrometheusTest::CheckAlerts() {
  std::size_t alerts = 0;
  for (const RunningRule& rule : prometheus_.Rules()) {
    if (!rule.alerting) continue;
    ++alerts;
    const auto answer = prometheus_.SinceStart(rule.expression);
    EXPECT_FALSE(answer.Names("instance", Estate::Instance(estate_.well()))) << rule.name;
    const auto* const expected = std::ranges::find(kExpected, rule.name, &Expected::alert);
    ASSERT_NE(expected, std::end(kExpected)) << rule.name << " is not provoked";
    const std::string instance = expected->node == nullptr
                                     ? estate_.Targets().front()
                                     : Estate::Instance((estate_.*expected->node)());
    EXPECT_TRUE(answer.Names("instance", instance)) << rule.name << ": " << rule.expression;
  }
  EXPECT_EQ(alerts, std::size(kExpected));
  // Both doors of one node: a policy that closed, an upstream that is dead.
  for (const char* const door : {"api", "gateway"}) {
    EXPECT_TRUE(prometheus_
                    .SinceStart("ALERTS{alertname=\"TidegateServerErrors\",door=\"" +
                                std::string(door) + "\"}")
                    .HasData())
        << door;
  }
}

/// Every family of a node is sound and in docs/metrics.md, and what is there some node tells.
void PrometheusTest::CheckDocumented() {
  std::set<std::string> told;
  for (const auto* const node :
       {&estate_.front(), &estate_.slow(), &estate_.orphan(), &estate_.well()}) {
    const auto text = test::MetricsText::Read(node->Metrics());
    EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
    for (const auto& family : text.families) told.insert(family.name);
  }
  std::set<std::string> documented;
  const std::string page = ReadFile(DocsFolder() / "metrics.md");
  for (const std::string& name : MetricNames(page)) {
    if (name.find(':') == std::string::npos) documented.insert(name);
  }
  for (const std::string& name : told) EXPECT_THAT(documented, Contains(name));
  for (const std::string& name : documented) {
    EXPECT_THAT(told, Contains(name)) << "no node tells it";
  }
}

TEST_F(PrometheusTest, WhateverIsAskedHasAnAnswer) {
  Suffer();
  CheckDecisions();
  CheckRules();
  CheckDashboard();
  CheckAlerts();
  CheckDocumented();
  if (HasFailure()) std::cerr << prometheus_.Said();
}

}  // namespace
}  // namespace tidegate::metrics_test

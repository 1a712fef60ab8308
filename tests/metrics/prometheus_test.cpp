// SPDX-License-Identifier: Apache-2.0
// A real Prometheus with the deployed rules scrapes nodes that have every fault that the alerts are
// for: every query of the rules, the alerts and the dashboard must have a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <set>

#include "metrics/dashboard.hpp"
#include "metrics/deployed.hpp"
#include "metrics/faulty_nodes.hpp"
#include "metrics/prometheus.hpp"
#include "support/files.hpp"
#include "support/wait.hpp"
#include "unit/telemetry/text_format.hpp"

namespace tidegate::metrics_test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

/// An alert, and the node that it must name.
struct Expected {
  std::string_view alert;
  redis_test::Node& (FaultyNodes::*node)() noexcept;  ///< Function that returns the node; nullptr:
                                                      ///< the node that is gone.
};
constexpr Expected kExpected[] = {
    {"TidegateDown", nullptr},
    {"TidegateFailClosed", &FaultyNodes::front},
    {"TidegateFailOpen", &FaultyNodes::front},
    {"TidegateFailLocal", &FaultyNodes::front},
    {"TidegateBreakerOpen", &FaultyNodes::orphan},
    {"TidegateRedisErrors", &FaultyNodes::front},
    {"TidegateStoreSlow", &FaultyNodes::slow},
    {"TidegateServerErrors", &FaultyNodes::front},
    {"TidegateReloadRefused", &FaultyNodes::front},
    {"TidegateStoreOverflow", &FaultyNodes::small},
    {"TidegateStoreNearlyFull", &FaultyNodes::small},
    {"TidegateKeyMismatch", &FaultyNodes::slow},
    {"TidegateQueueNearlyFull", &FaultyNodes::slow},
    {"TidegateConnectionsShed", &FaultyNodes::front},
    {"TidegateHotKey", &FaultyNodes::front},
    {"TidegateNoUpstreamTarget", &FaultyNodes::front},
    {"TidegateOverridesStale", &FaultyNodes::orphan},
    {"TidegateStateHealed", &FaultyNodes::front},
    {"TidegateStateRepaired", &FaultyNodes::front},
    {"TidegateDescriptorsNearlyGone", &FaultyNodes::small},
};

class PrometheusTest : public testing::Test {
 protected:
  [[nodiscard]] FaultyNodes::Seen Sees(std::string expression) {
    return [this, expression = std::move(expression),
            next = std::chrono::steady_clock::time_point{}]() mutable {
      // Queries Prometheus at most every 100 ms, because it has no new data earlier.
      const auto now = std::chrono::steady_clock::now();
      if (now < next) return false;
      next = now + 100ms;
      return prometheus_.True(expression);
    };
  }
  [[nodiscard]] static std::string Of(const redis_test::Node& node, std::string_view more = {}) {
    return "{instance=\"" + FaultyNodes::Instance(node) + "\"" + std::string(more) + "}";
  }
  void Suffer();
  void CheckDecisions();
  void CheckRules();
  void CheckAlerts();
  void CheckDashboard();
  void CheckDocumented();

  FaultyNodes nodes_;
  Prometheus prometheus_{nodes_.folder(), ScrapeConfig(nodes_.Targets(), nodes_.token())};
};

void PrometheusTest::Suffer() {
  const redis_test::Node& front = nodes_.front();
  // Before the faults, Prometheus must have scraped every node, so that increases are visible.
  EXPECT_TRUE(test::WaitUntil(
      Sees("count(count_over_time(up[10s]) > 1) == " + std::to_string(nodes_.Targets().size()))));
  for (const std::string_view decided_by : {"store", "cache"}) {
    EXPECT_TRUE(test::WaitUntil(Sees("tidegate_decisions_total" +
                                     Of(front, ",decided_by=\"" + std::string(decided_by) + "\""))))
        << decided_by;
  }
  // One shard of the store may be full before the others are, so both conditions are awaited.
  EXPECT_TRUE(nodes_.Overflow(Sees("increase(tidegate_store_overflowed_total" + Of(nodes_.small()) +
                                   "[10s]) > 0 and tidegate_store_entries" + Of(nodes_.small()) +
                                   " / tidegate_store_max_entries > 0.95")));
  EXPECT_TRUE(nodes_.FillQueue(Sees("increase(tidegate_failures_total" +
                                    Of(nodes_.slow(), ",reason=\"queue_full\"") + "[10s]) > 0")));
  EXPECT_TRUE(nodes_.OverloadGateway(Sees("increase(tidegate_connections_shed_total" +
                                          Of(front, ",listener=\"gateway\"") + "[10s]) > 0")));
  EXPECT_TRUE(nodes_.Corrupt(Sees("increase(tidegate_state_healed_total" + Of(front) +
                                  "[10s]) > 0 and increase(tidegate_state_repaired_total" +
                                  Of(front) + "[10s]) > 0")));
  EXPECT_TRUE(
      nodes_.RefuseReload(Sees("tidegate_config_last_reload_successful" + Of(front) + " == 0")));
  EXPECT_TRUE(nodes_.Change(Sees(
      "increase(tidegate_admin_changes_total" + Of(front, ",action=\"override\"") +
      "[10s]) > 0 and on (instance) tidegate_decisions_total" + Of(front, ",outcome=\"banned\"") +
      " and on (instance) tidegate_decisions_total" + Of(front, ",outcome=\"exempted\""))));
  EXPECT_TRUE(nodes_.ExhaustMemory(
      Sees("increase(tidegate_redis_errors_total" + Of(front, ",kind=\"oom\"") + "[10s]) > 0")));
  EXPECT_TRUE(nodes_.CorruptReplies(Sees("increase(tidegate_failures_total" +
                                         Of(nodes_.slow(), ",reason=~\"badresponse|badtypes\"") +
                                         "[10s]) > 0")));
  std::string outage = "tidegate_redis_breaker_state" + Of(front) + " > 0";
  for (const std::string_view decided_by : {"open", "closed", "local"}) {
    outage += " and on (instance) increase(tidegate_decisions_total" +
              Of(front, ",decided_by=\"" + std::string(decided_by) + "\"") + "[10s]) > 0";
  }
  EXPECT_TRUE(nodes_.Outage(Sees(outage)));
  EXPECT_TRUE(nodes_.TakeDescriptors(
      Sees("process_open_fds" + Of(nodes_.small()) + " / process_max_fds > 0.8")));
  EXPECT_TRUE(test::WaitUntil(Sees("tidegate_fleet_key_mismatches" + Of(nodes_.slow()) + " > 0")));
  // The alert fires after a node has not received the overrides for this time.
  EXPECT_TRUE(
      test::WaitUntil(Sees("tidegate_overrides_age_seconds" + Of(nodes_.orphan()) + " > 30"), 40s));
}

/// Checks that every outcome, every decided_by and every reason has occurred.
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
  // The position of the corrupted bytes decides which of the two errors occurs.
  EXPECT_TRUE(
      prometheus_.SinceStart("tidegate_failures_total{reason=~\"badresponse|badtypes\"} > 0")
          .HasData());
}

void PrometheusTest::CheckRules() {
  int queries = 0;
  for (const RunningRule& rule : prometheus_.Rules()) {
    EXPECT_EQ(rule.problem, "") << rule.name;
    ++queries;
    const auto answer = prometheus_.SinceStart(rule.alerting ? rule.expression : rule.name);
    EXPECT_EQ(answer.problem, "") << rule.name;
    EXPECT_TRUE(answer.HasData()) << rule.name << " has no result: " << rule.expression;
  }
  EXPECT_GT(queries, 30);
}

void PrometheusTest::CheckDashboard() {
  const Dashboard board =
      Dashboard::Read(test::ReadSourceFile(DeployFolder() / "grafana/tidegate.json"));
  EXPECT_THAT(board.problems, IsEmpty());
  EXPECT_THAT(board.variables, SizeIs(3));
  for (const auto& variable : board.variables) {
    EXPECT_THAT(prometheus_.LabelValues(variable.label, variable.selector), testing::Not(IsEmpty()))
        << variable.name;
  }
  int queries = 0;
  for (const auto& target : board.targets) {
    ++queries;
    const auto answer = prometheus_.SinceStart(target.expression);
    EXPECT_EQ(answer.problem, "") << target.panel;
    EXPECT_TRUE(answer.HasData()) << target.panel << " has no result: " << target.expression;
  }
  EXPECT_GT(queries, 90);
}

/// Checks that each alert has fired for the node with the fault, and that none has fired for the
/// node without faults.
void PrometheusTest::CheckAlerts() {
  std::size_t alerts = 0;
  for (const RunningRule& rule : prometheus_.Rules()) {
    if (!rule.alerting) continue;
    ++alerts;
    const auto answer = prometheus_.SinceStart(rule.expression);
    EXPECT_FALSE(answer.Names("instance", FaultyNodes::Instance(nodes_.healthy()))) << rule.name;
    const auto* const expected = std::ranges::find(kExpected, rule.name, &Expected::alert);
    ASSERT_NE(expected, std::end(kExpected)) << rule.name << " has no fault in this test";
    const std::string instance = expected->node == nullptr
                                     ? nodes_.Targets().front()
                                     : FaultyNodes::Instance((nodes_.*expected->node)());
    EXPECT_TRUE(answer.Names("instance", instance)) << rule.name << ": " << rule.expression;
  }
  EXPECT_EQ(alerts, std::size(kExpected));
  // Both listeners of one node have server errors: the API because of a `closed` policy, the
  // gateway because of a dead upstream.
  for (const char* const listener : {"api", "gateway"}) {
    EXPECT_TRUE(prometheus_
                    .SinceStart("ALERTS{alertname=\"TidegateServerErrors\",listener=\"" +
                                std::string(listener) + "\"}")
                    .HasData())
        << listener;
  }
}

/// Checks that every metric of a node is valid and documented in docs/metrics.md, and that some
/// node exposes each documented metric.
void PrometheusTest::CheckDocumented() {
  std::set<std::string> exposed;
  for (const auto* const node :
       {&nodes_.front(), &nodes_.slow(), &nodes_.orphan(), &nodes_.healthy()}) {
    const auto text = test::MetricsText::Read(node->Metrics());
    EXPECT_THAT(text.problems, IsEmpty()) << text.Complaint();
    for (const auto& family : text.families) exposed.insert(family.name);
  }
  std::set<std::string> documented;
  const std::string page = test::ReadSourceFile(DocsFolder() / "metrics.md");
  for (const std::string& name : MetricNames(page)) {
    if (name.find(':') == std::string::npos) documented.insert(name);
  }
  for (const std::string& name : exposed) EXPECT_THAT(documented, Contains(name));
  for (const std::string& name : documented) {
    EXPECT_THAT(exposed, Contains(name)) << "no node exposes this metric";
  }
}

TEST_F(PrometheusTest, EveryAlertRuleAndPanelHasResult) {
  Suffer();
  CheckDecisions();
  CheckRules();
  CheckDashboard();
  CheckAlerts();
  CheckDocumented();
  if (HasFailure()) std::cerr << prometheus_.Output();
}

}  // namespace
}  // namespace tidegate::metrics_test

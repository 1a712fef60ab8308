// SPDX-License-Identifier: Apache-2.0
// The files of deploy/ on their own: promtool accepts them, and every alert has a test and a
// section in the documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "metrics/deployed.hpp"
#include "redis/redis_server.hpp"
#include "support/child_process.hpp"
#include "support/files.hpp"

namespace tidegate::metrics_test {
namespace {

using testing::HasSubstr;

/// Returns the output of the program if it failed, otherwise an empty string.
std::string Complaint(std::vector<std::string> arguments) {
  const test::TemporaryFolder folder;
  const auto output = folder.path() / "output";
  if (test::ChildProcess(std::move(arguments), {.output = output}).Wait() == 0) return {};
  return "it failed: " + test::ReadFile(output);
}

/// Returns the rest of each line that contains `beginning`, such as `- alert: `.
std::set<std::string> Named(std::string_view text, std::string_view beginning) {
  std::set<std::string> names;
  for (std::size_t at = text.find(beginning); at != std::string_view::npos;
       at = text.find(beginning, at + 1)) {
    const std::string_view rest = text.substr(at + beginning.size());
    names.emplace(rest.substr(0, rest.find_first_of("\n\"")));
  }
  return names;
}

const std::filesystem::path kFolder = DeployFolder() / "prometheus";

TEST(PrometheusFilesTest, PromtoolAcceptsAllFiles) {
  EXPECT_EQ(
      Complaint({"promtool", "check", "rules", kFolder / "recording.yml", kFolder / "alerts.yml"}),
      "");
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "token") << "0123456789abcdef\n";
  std::ofstream(folder.path() / "prometheus.yml")
      << ScrapeConfig({"127.0.0.1:9180"}, folder.path() / "token");
  EXPECT_EQ(Complaint({"promtool", "check", "config", folder.path() / "prometheus.yml"}), "");
}

TEST(PrometheusFilesTest, EveryAlertFiresForFailingNodesOnly) {
  EXPECT_EQ(Complaint({"promtool", "test", "rules", kFolder / "alerts_test.yml"}), "");
  const auto alerts = Named(test::ReadSourceFile(kFolder / "alerts.yml"), "- alert: ");
  EXPECT_GT(alerts.size(), 15U);
  EXPECT_EQ(Named(test::ReadSourceFile(kFolder / "alerts_test.yml"), "alertname=\""), alerts);
}

TEST(PrometheusFilesTest, EveryAlertHasSeverityAndRunbookSection) {
  const std::string text = test::ReadSourceFile(kFolder / "alerts.yml");
  const std::string runbook = test::ReadSourceFile(DocsFolder() / "alerts.md");
  const auto alerts = Named(text, "- alert: ");
  EXPECT_EQ(Named(runbook, "\n## Tidegate").size(), alerts.size());
  for (const std::string& alert : alerts) {
    const std::size_t begin = text.find("- alert: " + alert + "\n");
    const std::string rule = text.substr(begin, text.find("- alert: ", begin + 1) - begin);
    for (const char* const part : {"severity: ", "summary: ", "description: "}) {
      EXPECT_THAT(rule, HasSubstr(part)) << alert;
    }
    std::string anchor = alert;
    for (char& c : anchor) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_THAT(rule, HasSubstr("runbook: docs/alerts.md#" + anchor + "\n"));
    EXPECT_THAT(runbook, HasSubstr("\n## " + alert + "\n"));
  }
}

}  // namespace
}  // namespace tidegate::metrics_test

// SPDX-License-Identifier: Apache-2.0
// A reload that an operator asks for: answered once it is in force everywhere, or with what is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "service/admin_case.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Rules(int count) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    yaml += "  - {id: r" + std::to_string(i) + ", per: header:x-api-key, limit: 5/h}\n";
  }
  return yaml;
}

/// A service whose configuration is what `yaml` says, read on a thread of its own as a process
/// does.
class AdminReload : public testing::Test {
 protected:
  AdminReload() {
    service_.server().SetReloader([this](const std::function<void(ReloadReport)>& done) {
      threads_.emplace_back([this, done] { done(Reload()); });
    });
  }
  ~AdminReload() override {
    for (std::thread& thread : threads_) thread.join();
  }

  HttpAnswer Ask(std::string_view body = "{}") { return AskAdmin(service_, "/v1/reload", body); }

  Service service_{Rules(1), 2};
  std::string yaml_ = Rules(1);
  ReloadReport::Outcome instead_ = ReloadReport::Outcome::kApplied;

 private:
  ReloadReport Reload() {
    if (instead_ != ReloadReport::Outcome::kApplied) return {.outcome = instead_};
    auto reading = ParseConfig("listen: {api: off, admin: 127.0.0.1:0}\n" + yaml_);
    ReloadReport report;
    const bool applied =
        reading.config && service_.server().Reload(*reading.config, reading.problems);
    report.outcome = applied ? ReloadReport::Outcome::kApplied : ReloadReport::Outcome::kRefused;
    report.rules = service_.server().rule_count();
    if (applied) report.needs_restart = service_.server().NeedsRestart(*reading.config);
    report.problems = std::move(reading.problems);
    return report;
  }

  std::vector<std::thread> threads_;
};

TEST_F(AdminReload, IsAnsweredWhenEveryThreadHasIt) {
  // New connections go to either reactor.
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<HttpClient>(service_.api()));
  for (int rules = 2; rules < 12; ++rules) {
    yaml_ = Rules(rules);
    const HttpAnswer answer = Ask();
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_TRUE(answer.Json().at("applied").as_bool());
    EXPECT_EQ(answer.Json().at("rules").as_int64(), rules);
    for (const auto& client : clients) {
      client->Send(Post("/v1/peek", ByRule("r" + std::to_string(rules - 1), "abc")));
      ASSERT_EQ(client->Read().status, 200);
    }
  }
  EXPECT_EQ(service_.Metric(R"(tidegate_admin_changes_total{action="reload"})"), 10);
}

TEST_F(AdminReload, SaysWhatItWouldRatherHaveAndWhatNeedsARestart) {
  yaml_ = "limits: {connections: 77}\nrules: [{id: r, per: header:x, limit: 1/s}]\n";
  const HttpAnswer answer = Ask();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("\"limits\""));
  EXPECT_THAT(answer.body, HasSubstr(R"("problems":[{"severity":"warning","line":)"));
  EXPECT_EQ(answer.Json().at("left_out").as_int64(), 0);
}

TEST_F(AdminReload, OfErrorsTheOldOneStaysAndTheyAreListed) {
  yaml_ = "rules:\n";
  for (int i = 0; i < 150; ++i) {
    yaml_ += "  - {id: r" + std::to_string(i) + ", per: client_ip, limit: \"\xff\"}\n";
  }
  const HttpAnswer answer = Ask();
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  const auto problem = answer.Json();  // Valid, whatever stood in the file.
  EXPECT_THAT(std::string(problem.at("detail").as_string()),
              HasSubstr("the old one stays in force"));
  EXPECT_LE(problem.at("problems").as_array().size(), 100);
  EXPECT_EQ(problem.at("problems").as_array()[0].at("severity").as_string(), "error");
  EXPECT_EQ(service_.Decide(ByRule("r0", "abc")).status, 200);
  EXPECT_EQ(service_.Metric(R"(tidegate_admin_changes_total{action="reload"})"), 0);
  EXPECT_THAT(ReadAdmin(service_, "/v1/audit").body, Not(HasSubstr("reload")));
}

TEST_F(AdminReload, MoreThanAHundredProblemsAreCounted) {
  yaml_ = "rules:\n";
  for (int i = 0; i < 150; ++i) {
    yaml_ += "  - {id: r" + std::to_string(i) + ", per: client_ip, limit: 0/s}\n";
  }
  const auto problem = Ask().Json();
  EXPECT_EQ(problem.at("problems").as_array().size(), 100);
  EXPECT_GT(problem.at("left_out").as_int64(), 0);
}

TEST_F(AdminReload, IsWrittenDown) {
  yaml_ = Rules(3);
  ASSERT_EQ(Ask().status, 200);
  const auto entries = ReadAdmin(service_, "/v1/audit").Json().at("entries").as_array();
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(entries[0].at("action").as_string(), "reload");
  EXPECT_EQ(entries[0].at("detail").as_string(), "3 rules");
  EXPECT_EQ(entries[0].at("by").as_string(), "(loopback)");
}

TEST_F(AdminReload, WithoutAFileOrAtTheEndThereIsNothingToRead) {
  instead_ = ReloadReport::Outcome::kNoFile;
  EXPECT_EQ(Ask().status, 409);
  instead_ = ReloadReport::Outcome::kStopping;
  EXPECT_EQ(Ask().status, 503);
  Service other(Rules(1));
  EXPECT_EQ(AskAdmin(other, "/v1/reload", "{}").status, 409);
}

TEST_F(AdminReload, TakesNothingButAnEmptyObject) {
  EXPECT_EQ(Ask(R"({"rule":"r0"})").status, 400);
  EXPECT_EQ(Ask("").status, 400);
  EXPECT_EQ(ReadAdmin(service_, "/v1/reload").status, 405);
  EXPECT_EQ(service_.Metric(R"(tidegate_config_reloads_total{result="applied"})"), 0);
}

TEST(AdminReloadRights, AreThoseOfWhoMayAct) {
  Config config = Service::ConfigOf(Rules(1));
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"alice", "0123456789abcdef-all", TokenSpec::May::kAll},
                          {"bob", "0123456789abcdef-ask", TokenSpec::May::kAsk}};
  Service service(config);
  const auto as = [&](const std::string& token) {
    return AskAdmin(service, "/v1/reload", "{}", "Authorization: Bearer " + token + "\r\n").status;
  };
  EXPECT_EQ(as("0123456789abcdef-ask"), 403);
  EXPECT_EQ(as("0123456789abcdef-all"), 409);  // It may, but there is no file.
}

}  // namespace
}  // namespace tidegate::service

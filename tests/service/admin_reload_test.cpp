// SPDX-License-Identifier: Apache-2.0
// Reloads that an operator requests: the response comes when the configuration is in force on every
// reactor, or names what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "server/config_reloader.hpp"
#include "service/admin_case.hpp"
#include "support/files.hpp"

namespace tidegate::service {
namespace {

using testing::HasSubstr;
using testing::Not;
using Done = std::function<void(const ReloadReport&)>;

std::string Rules(int count) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    yaml += "  - {id: r" + std::to_string(i) + ", per: header:x-api-key, limit: 5/h}\n";
  }
  return yaml;
}

/// A service whose configuration is read on a separate thread, as in a process.
class AdminReloadTest : public testing::Test {
 protected:
  AdminReloadTest() {
    service_.server().SetReloader([this](const std::string&, const Done& done) {
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([this, done] { done(Reload()); });
    });
  }
  ~AdminReloadTest() override {
    const std::lock_guard lock(mutex_);
    for (std::thread& thread : threads_) thread.join();
  }

  HttpResponse Ask(std::string_view body = "{}") { return AskAdmin(service_, "/v1/reload", body); }
  void Write(std::string yaml) {
    const std::lock_guard lock(content_);
    yaml_ = std::move(yaml);
  }
  void Instead(ReloadReport::Outcome outcome) {
    const std::lock_guard lock(content_);
    instead_ = outcome;
  }

  Service service_{Rules(1), 2};

 private:
  /// Returns the content of the configuration file, which tests change between two reloads.
  std::pair<std::string, ReloadReport::Outcome> Read() {
    const std::lock_guard lock(content_);
    return {yaml_, instead_};
  }
  ReloadReport Reload() {
    const auto [yaml, instead] = Read();
    if (instead != ReloadReport::Outcome::kApplied) return {.outcome = instead};
    auto reading = ParseConfig("listen: {api: off, admin: 127.0.0.1:0}\n" + yaml);
    ReloadReport report;
    const bool applied =
        reading.config && service_.server().Reload(*reading.config, reading.problems);
    report.outcome = applied ? ReloadReport::Outcome::kApplied : ReloadReport::Outcome::kRefused;
    report.rules = service_.server().rule_count();
    if (applied) report.needs_restart = service_.server().NeedsRestart(*reading.config);
    report.problems = std::move(reading.problems);
    return report;
  }

  std::mutex content_;
  std::string yaml_ = Rules(1);
  ReloadReport::Outcome instead_ = ReloadReport::Outcome::kApplied;
  std::mutex mutex_;
  std::vector<std::thread> threads_;  ///< Guarded by mutex_.
};

TEST_F(AdminReloadTest, AnswersWhenEveryReactorHasTheSnapshot) {
  // New connections go to either of the two reactors.
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<HttpClient>(service_.api()));
  for (int rules = 2; rules < 12; ++rules) {
    Write(Rules(rules));
    const HttpResponse answer = Ask();
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

TEST_F(AdminReloadTest, ListsWarningsAndSectionsThatNeedARestart) {
  Write("limits: {connections: 77}\nrules: [{id: r, per: header:x, limit: 1/s}]\n");
  const HttpResponse answer = Ask();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("\"limits\""));
  EXPECT_THAT(answer.body, HasSubstr(R"("problems":[{"severity":"warning","line":)"));
  EXPECT_EQ(answer.Json().at("left_out").as_int64(), 0);
}

TEST_F(AdminReloadTest, KeepsOldConfigurationAndListsErrors) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 150; ++i) {
    yaml += "  - {id: r" + std::to_string(i) + ", per: client_ip, limit: \"\xff\"}\n";
  }
  Write(yaml);
  const HttpResponse answer = Ask();
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  // The problem document is valid JSON, whatever the file contains.
  const auto problem = answer.Json();
  EXPECT_THAT(std::string(problem.at("detail").as_string()),
              HasSubstr("the old one stays in force"));
  EXPECT_LE(problem.at("problems").as_array().size(), 100);
  EXPECT_EQ(problem.at("problems").as_array()[0].at("severity").as_string(), "error");
  EXPECT_EQ(service_.Decide(ByRule("r0", "abc")).status, 200);
  EXPECT_EQ(service_.Metric(R"(tidegate_admin_changes_total{action="reload"})"), 0);
  EXPECT_THAT(ReadAdmin(service_, "/v1/audit").body, Not(HasSubstr("reload")));
}

TEST_F(AdminReloadTest, CountsProblemsBeyondHundred) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < 150; ++i) {
    yaml += "  - {id: r" + std::to_string(i) + ", per: client_ip, limit: 0/s}\n";
  }
  Write(yaml);
  const auto problem = Ask().Json();
  EXPECT_EQ(problem.at("problems").as_array().size(), 100);
  EXPECT_GT(problem.at("left_out").as_int64(), 0);
}

TEST_F(AdminReloadTest, RecordsReloadInTheAudit) {
  Write(Rules(3));
  ASSERT_EQ(Ask().status, 200);
  const auto entries = ReadAdmin(service_, "/v1/audit").Json().at("entries").as_array();
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(entries[0].at("action").as_string(), "reload");
  EXPECT_EQ(entries[0].at("detail").as_string(), "3 rules");
  EXPECT_EQ(entries[0].at("by").as_string(), "(loopback)");
}

TEST_F(AdminReloadTest, FailsWithoutFileOrDuringShutdown) {
  Instead(ReloadReport::Outcome::kNoFile);
  EXPECT_EQ(Ask().status, 409);
  Instead(ReloadReport::Outcome::kStopping);
  EXPECT_EQ(Ask().status, 503);
  Service other(Rules(1));
  EXPECT_EQ(AskAdmin(other, "/v1/reload", "{}").status, 409);
}

TEST_F(AdminReloadTest, AcceptsOnlyEmptyJsonObject) {
  EXPECT_EQ(Ask(R"({"rule":"r0"})").status, 400);
  EXPECT_EQ(Ask("").status, 400);
  EXPECT_EQ(ReadAdmin(service_, "/v1/reload").status, 405);
  EXPECT_EQ(service_.Metric(R"(tidegate_config_reloads_total{result="applied"})"), 0);
}

/// Collects reload requests of operators; the test decides when they are answered.
class Pending {
 public:
  explicit Pending(Service& service) {
    service.server().SetReloader([this](const std::string&, const Done& done) {
      const std::lock_guard lock(mutex_);
      done_.push_back(done);
    });
  }
  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    return done_.size();
  }
  void Await(std::size_t count_wanted) {
    while (count() < count_wanted) std::this_thread::yield();
  }
  void AnswerAll() {
    const std::lock_guard lock(mutex_);
    for (const auto& done : done_) done({.outcome = ReloadReport::Outcome::kApplied, .rules = 7});
  }

 private:
  std::mutex mutex_;
  std::vector<Done> done_;
};

std::string ReloadRequest(const std::string& more_fields = {}) {
  return "POST /v1/reload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
         more_fields + "Content-Length: 2\r\n\r\n{}";
}

TEST(AdminReloadEdgeTest, SurvivesClientThatDisconnects) {
  Service service(Rules(1), 2);
  Pending pending(service);
  {
    HttpClient gone(service.admin());
    gone.Send(ReloadRequest());
    pending.Await(1);
  }
  HttpClient stays(service.admin());
  stays.Send(ReloadRequest());
  pending.Await(2);
  // The server answers other requests in the meantime.
  EXPECT_EQ(ReadAdmin(service, "/v1/status").status, 200);
  pending.AnswerAll();
  EXPECT_EQ(stays.Read().Json().at("rules").as_int64(), 7);
}

TEST(AdminReloadEdgeTest, ShutsDownDuringReload) {
  std::optional<Service> service(std::in_place, Rules(1), 2);
  Pending pending(*service);
  HttpClient client(service->admin());
  client.Send(ReloadRequest());
  pending.Await(1);
  service.reset();
}

TEST(ConfigReloaderTest, CombinesRequestsMadeBeforeReloadBegins) {
  const std::string yaml =
      "access:\n  tokens: |\n    a 0123456789abcdef-a\n    b 0123456789abcdef-b\n" + Rules(2);
  test::TemporaryFolder folder;
  const auto file = folder.path() / "tidegate.yaml";
  std::ofstream(file) << "listen: {api: '127.0.0.1:0', admin: '127.0.0.1:0'}\n" << yaml;
  Service service(yaml);
  boost::asio::io_context context;
  ConfigReloader reloader(context, service.server(), {.file = file.string()}, {});
  std::vector<std::unique_ptr<HttpClient>> clients;
  // Sends requests, and runs the thread that reloads once the server has read all of them.
  const auto reload = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      clients.push_back(std::make_unique<HttpClient>(service.admin()));
      clients.back()->Send(
          ReloadRequest("Authorization: Bearer 0123456789abcdef-" + name + "\r\n"));
    }
    EXPECT_EQ(ReadAdmin(service, "/healthz").status, 200);
    testing::internal::CaptureStderr();
    context.restart();
    context.poll();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(reload({"a", "b", "a"}), HasSubstr("why=\"requested by a b\""));
  EXPECT_EQ(service.server().reloads().applied, 1u);
  EXPECT_THAT(reload({"b", "a"}), HasSubstr("why=\"requested by b a\""));
  EXPECT_EQ(service.server().reloads().applied, 2u);
  for (const auto& client : clients) EXPECT_EQ(client->Read().status, 200);
}

TEST(AdminReloadRightsTest, RejectsCallersWithoutRightToChange) {
  Config config = Service::ConfigOf(Rules(1));
  config.listen.admin.auth = ListenSpec::Auth::kRequired;
  config.access.tokens = {{"alice", "0123456789abcdef-all", TokenSpec::May::kAll},
                          {"bob", "0123456789abcdef-ask", TokenSpec::May::kAsk}};
  Service service(config);
  const auto as = [&](const std::string& token) {
    return AskAdmin(service, "/v1/reload", "{}", "Authorization: Bearer " + token + "\r\n").status;
  };
  EXPECT_EQ(as("0123456789abcdef-ask"), 403);
  // The token permits a reload, but the server has no file to reload.
  EXPECT_EQ(as("0123456789abcdef-all"), 409);
}

}  // namespace
}  // namespace tidegate::service

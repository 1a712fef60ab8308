// SPDX-License-Identifier: Apache-2.0
// `tidegate bench` against a real server: every request gets a response, and the report equals what
// the server decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "redis/fleet.hpp"
#include "support/child_process.hpp"
#include "support/files.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::cli_test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

class BenchTest : public testing::Test {
 protected:
  /// Runs `tidegate bench` and returns its exit code. Its output is in `output_` afterwards.
  int Bench(std::vector<std::string> arguments) {
    const auto file = folder_.path() / ("output" + std::to_string(++runs_));
    arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "bench"});
    test::ChildProcess bench(std::move(arguments), {.output = file});
    const int code = bench.Wait(test::kPatience);
    output_ = test::ReadFile(file);
    return code;
  }
  std::int64_t Number(std::string_view name) const {
    return json::parse(output_).at(name).to_number<std::int64_t>();
  }
  std::string Api() const { return "127.0.0.1:" + std::to_string(node_.api()); }
  std::string Admin() const { return "127.0.0.1:" + std::to_string(node_.admin()); }
  std::string Resp() const { return "127.0.0.1:" + std::to_string(node_.resp()); }

  test::TemporaryFolder folder_;
  redis_test::Node node_{folder_.path(), "node",
                         "rules:\n"
                         "  - {id: ten, per: header:x-api-key, limit: 10/h}\n"
                         "  - {id: address, per: client_ip, limit: 1/h}\n",
                         1, test::FreePort()};
  std::string output_;
  int runs_ = 0;
};

TEST_F(BenchTest, ReportsDecisionsOverHttp) {
  ASSERT_EQ(Bench({"--server", Api(), "--rule", "ten", "--identities", "3", "--connections", "4",
                   "--threads", "2", "--for", "200ms", "--json"}),
            0)
      << output_;
  EXPECT_EQ(Number("allowed"), 30);
  EXPECT_EQ(Number("errors"), 0);
  const json::value report = json::parse(output_);
  EXPECT_EQ(report.at("statuses").at("200"), 30);
  EXPECT_EQ(report.at("statuses").at("429"), report.at("denied"));
  EXPECT_EQ(Number("decisions"), Number("allowed") + Number("denied"));
  EXPECT_GT(report.at("latency_us").at("p50").as_int64(), 0);
  EXPECT_EQ(node_.Metric("tidegate_decisions_total"), static_cast<double>(Number("decisions")));
}

TEST_F(BenchTest, ReportsDecisionsOverPipelinedResp) {
  ASSERT_EQ(Bench({"--resp", Resp(), "--rule", "ten", "--identities", "100", "--pipeline", "16",
                   "--connections", "2", "--zipf", "1.1", "--for", "200ms", "--json"}),
            0)
      << output_;
  EXPECT_GT(Number("allowed"), 10);
  EXPECT_GT(Number("denied"), 0);
  EXPECT_EQ(Number("errors"), 0);
  EXPECT_EQ(node_.Metric("tidegate_decisions_total"), static_cast<double>(Number("decisions")));
}

TEST_F(BenchTest, SendsAtGivenRate) {
  ASSERT_EQ(
      Bench({"--server", Api(), "--rule", "ten", "--rate", "200/s", "--for", "500ms", "--json"}), 0)
      << output_;
  EXPECT_LE(Number("decisions"), 101);
  EXPECT_GE(Number("decisions"), 50) << "far fewer requests than the given rate";
}

TEST_F(BenchTest, PrintsTable) {
  ASSERT_EQ(Bench({"--server", Api(), "--rule", "address", "--addresses", "--identities", "2",
                   "--for", "100ms"}),
            0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("POST /v1/decide at " + Api() + ", rule address, 2 identities"));
  EXPECT_THAT(output_, testing::ContainsRegex("allowed +2 "));
  EXPECT_THAT(output_, testing::ContainsRegex("latency +p50 .* p99.9 .* max "));
}

TEST_F(BenchTest, ReportsWhyThereAreNoDecisions) {
  EXPECT_EQ(Bench({"--server", Api(), "--rule", "none", "--for", "5s"}), 2);
  EXPECT_THAT(output_, HasSubstr("tidegate bench: there is no rule 'none'"));
  EXPECT_EQ(Bench({"--resp", Resp(), "--rule", "none", "--for", "5s"}), 2);
  EXPECT_THAT(output_, HasSubstr("no rule"));
  EXPECT_EQ(Bench({"--resp", Api(), "--rule", "ten", "--for", "5s"}), 2);
  EXPECT_THAT(output_, HasSubstr("does not respond like a tidegate server"));
  EXPECT_EQ(Bench({"--server", Api(), "--rule", "address", "--for", "5s"}), 2);
  EXPECT_THAT(output_, HasSubstr("; use --addresses to send addresses as identities"));
  EXPECT_EQ(Bench({"--server", Admin(), "--rule", "ten", "--for", "5s"}), 2);
  EXPECT_THAT(output_, HasSubstr("; is this the port of the API? Name another with --server"));
  node_.Kill();
  EXPECT_EQ(Bench({"--server", Api(), "--rule", "ten", "--for", "50ms"}), 3);
  EXPECT_THAT(output_, HasSubstr("no server listens there"));
}

}  // namespace
}  // namespace tidegate::cli_test

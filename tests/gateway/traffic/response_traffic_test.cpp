// SPDX-License-Identifier: Apache-2.0
// Sends responses of real servers through nginx and through Tidegate: Tidegate must forward what
// nginx forwards, with the same status and body, unless two readers could take a response for
// different ones.
#include <gtest/gtest.h>

#include <cstdio>

#include "gateway/case_runner.hpp"
#include "gateway/traffic/response_rows.hpp"
#include "gateway/traffic/traffic_rig.hpp"

namespace tidegate::gateway_test {
namespace {

std::string TargetOf(std::size_t index) { return Numbered("/case-$NNN", index); }

/// Returns what clients receive through the proxy for each row; rows that nginx does not support
/// are skipped for nginx.
std::vector<Seen> ThroughProxy(const std::vector<ResponseRow>& rows, const ProxyProcess& proxy) {
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (proxy.name() == "nginx" && rows[i].judge == ResponseRow::Judge::kAlways) {
      exchanges.push_back({"GET /ready HTTP/1.1\r\nHost: app.test\r\n\r\n", ""});
      continue;
    }
    exchanges.push_back({rows[i].method + " " + TargetOf(i) + " HTTP/1.1\r\nHost: app.test\r\n\r\n",
                         "", rows[i].method == "HEAD"});
  }
  return RunAll(proxy.port(), exchanges);
}

bool Passed(const ResponseRow& row, const Seen& seen) {
  return seen.end == Seen::End::kAnswered && seen.answers.size() == 1 &&
         seen.answers[0].status == row.status && seen.answers[0].body == row.body;
}

void Check(const std::vector<ResponseRow>& rows, const TidegateOptions& options,
           const char* title) {
  RawUpstream upstream;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    upstream.Answer(TargetOf(i), {rows[i].bytes, rows[i].then});
  }
  const auto nginx = RequiredNginx(upstream.port());
  const auto tidegate = TidegateWithRules(upstream.port(), options);
  const std::vector<Seen> through_nginx = ThroughProxy(rows, *nginx);
  const std::vector<Seen> through_tidegate = ThroughProxy(rows, *tidegate);
  std::size_t nginx_refused = 0, passed = 0, ambiguous = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool always = rows[i].judge == ResponseRow::Judge::kAlways;
    const bool nginx_passes = always || Passed(rows[i], through_nginx[i]);
    if (!nginx_passes) {
      ++nginx_refused;
      std::printf("not forwarded by nginx: %s: %s\n", rows[i].name.c_str(),
                  through_nginx[i].Text().c_str());
    }
    if (Passed(rows[i], through_tidegate[i])) {
      ++passed;
    } else if (!rows[i].ambiguous.empty()) {
      ++ambiguous;
    } else {
      EXPECT_FALSE(nginx_passes) << "refused: " << rows[i].name << "\n  "
                                 << through_tidegate[i].Text() << "\n  "
                                 << (through_tidegate[i].answers.empty()
                                         ? through_tidegate[i].why
                                         : through_tidegate[i].answers[0].body.substr(0, 300));
    }
  }
  EXPECT_TRUE(tidegate->alive()) << tidegate->Output();
  std::printf(
      "%s: %zu rows, %zu not passed by nginx; Tidegate passes %zu and refuses %zu, of which "
      "%zu are ambiguous\n",
      title, rows.size(), nginx_refused, passed, rows.size() - passed, ambiguous);
}

TEST(ResponseTrafficTest, ForwardsResponsesThatNginxForwards) {
  Check(ResponseRows(), {}, "responses");
}

TEST(ResponseTrafficTest, ForwardsManyFieldsWithRaisedResponseHeaderCount) {
  Check(ManyFieldRows(),
        {.sections = "gateway: { response_header_count: 1000, response_header_bytes: 64KiB }\n"},
        "responses of many fields");
}

TEST(ResponseTrafficTest, ForwardsLongFieldsWithRaisedResponseHeaderBytes) {
  Check(LongFieldRows(), {.sections = "gateway: { response_header_bytes: 128KiB }\n"},
        "responses of long fields");
}

TEST(ResponseTrafficTest, ForwardsBareLfResponsesIfConfigured) {
  Check(BareLfRows(), {.upstream = ", accept_bare_lf: true"}, "responses with bare LF");
}

}  // namespace
}  // namespace tidegate::gateway_test

// SPDX-License-Identifier: Apache-2.0
// Upstreams that respond with all kinds of valid and invalid bytes: a client of Tidegate gets a
// valid response, 502, or a response that visibly breaks off. No client gets the response to
// another request.
#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "gateway/answer_case.hpp"
#include "gateway/case_runner.hpp"
#include "gateway/proxy_process.hpp"

namespace tidegate::gateway_test {
namespace {

/// Returns an exchange with the request of the case and, on the same connection, the request for
/// the marker. An HTTP/1.0 exchange has only one request: with unread bytes behind it, the kernel
/// and not the gateway would choose how the connection is closed.
Exchange ExchangeOf(const AnswerCase& one, std::size_t index) {
  std::string send = one.method + " /case-$NNN " + one.version + "\r\nHost: a\r\n\r\n";
  if (one.version == "HTTP/1.1") send += "GET /marker-$NNN HTTP/1.1\r\nHost: a\r\n\r\n";
  return {Numbered(send, index), Numbered("/marker-$NNN", index), one.method == "HEAD"};
}

void ExpectMarkerOrEnd(std::size_t index, const Seen& seen) {
  for (std::size_t i = 1; i < seen.answers.size(); ++i) {
    EXPECT_EQ(seen.answers[i].Field("x-answer-to"), Numbered("/marker-$NNN", index));
  }
}

void ExpectPassed(const AnswerCase& one, std::size_t index, const Seen& seen) {
  ASSERT_FALSE(seen.answers.empty());
  const Message& answer = seen.answers.front();
  EXPECT_EQ(answer.status, one.status);
  if (one.body) {
    EXPECT_EQ(answer.body, *one.body);
  }
  if (answer.Count("x-answer-to") != 0) {
    EXPECT_EQ(answer.Field("x-answer-to"), Numbered("/case-$NNN", index));
  }
  if (one.version == "HTTP/1.0") {
    EXPECT_EQ(answer.Count("transfer-encoding"), 0) << "chunked response to an HTTP/1.0 client";
    EXPECT_EQ(seen.end, Seen::End::kClosed);
  } else {
    EXPECT_EQ(seen.end, Seen::End::kAnswered)
        << "the client's connection was closed for an error of the upstream";
  }
}

void ExpectCut(const Seen& seen) {
  if (!seen.answers.empty()) {
    EXPECT_EQ(seen.answers.front().status, 502);
    return;
  }
  EXPECT_EQ(seen.end, Seen::End::kClosed);
  EXPECT_TRUE(seen.last.head_whole);
  EXPECT_EQ(seen.last.frame, Frame::kPartial);
}

void Judge(const AnswerCase& one, std::size_t index, const Seen& seen) {
  EXPECT_EQ(seen.why, "") << "the client received an ambiguous response: " << Printable(seen.rest);
  EXPECT_NE(seen.end, Seen::End::kSilent);
  ExpectMarkerOrEnd(index, seen);
  switch (one.result) {
    case Result::kBadGateway:
      ASSERT_FALSE(seen.answers.empty());
      EXPECT_EQ(seen.answers.front().status, 502);
      EXPECT_EQ(seen.answers.front().Count("x-answer-to"), 0);
      break;
    case Result::kCut: ExpectCut(seen); break;
    case Result::kPasses: ExpectPassed(one, index, seen); break;
  }
}

/// Runs the cases one after another, so that each uses the connection that the case before left
/// behind, and then many at a time.
TEST(GatewayResponseTest, ForwardsResponseOrAnswers502OrCutsResponseOff) {
  AnswerCases cases;
  for (auto* group : {&SoundAnswers, &BadHeads, &BadFramings, &BadBodies}) {
    for (AnswerCase& one : group()) cases.push_back(std::move(one));
  }
  RawUpstream upstream;
  const auto proxy = ProxyProcess::Tidegate(TIDEGATE_BINARY, upstream.port());
  std::vector<Exchange> exchanges;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    upstream.Answer(Numbered("/case-$NNN", i), {Numbered(cases[i].bytes, i), cases[i].then});
    exchanges.push_back(ExchangeOf(cases[i], i));
  }
  std::vector<Seen> apart;
  for (const Exchange& exchange : exchanges) apart.push_back(RunOne(proxy->port(), exchange));
  const std::vector<Seen> together = RunAll(proxy->port(), exchanges);
  int whole = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE("case '" + Printable(cases[i].name) +
                 "': " + Printable(cases[i].bytes.substr(0, 300)));
    for (const Seen* seen : {&std::as_const(apart[i]), &together[i]}) {
      SCOPED_TRACE((seen == &apart[i] ? "one after another: " : "many at a time: ") + seen->Text());
      Judge(cases[i], i, *seen);
    }
    whole += apart[i].answers.empty() || apart[i].answers.front().status == 502 ? 0 : 1;
  }
  EXPECT_TRUE(proxy->alive()) << proxy->Output();
  std::printf("%zu responses: %d forwarded, the others 502 or cut off\n", cases.size(), whole);
}

}  // namespace
}  // namespace tidegate::gateway_test

// SPDX-License-Identifier: Apache-2.0
// Rules whose cost is in the response: `cost: response:x-tokens-used`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kHundred =
    "rules: [{id: tokens, per: header:x-api-key, limit: 100/s, cost: "
    "\"response:x-tokens-used\"}]\n";

class ResponseCostTest : public testing::Test {
 protected:
  HttpResponse Ask() { return gate_.Get("/", "x-api-key: a\r\n"); }
  std::int64_t Remaining() { return gate_.Remaining("tokens", "a"); }
  bool WaitUntilRemaining(std::int64_t left) {
    return test::WaitUntil([&] { return Remaining() == left; });
  }

  std::string answer_ = Http("200 OK", "X-Tokens-Used: 30\r\n", "ok");
  ScriptedUpstream up_{ScriptedUpstream::Each([this](const HttpRequest&) { return answer_; })};
  Gate gate_{Routed(up_.url(), {}, kHundred)};
};

TEST_F(ResponseCostTest, ChargesCostFromResponseHeader) {
  EXPECT_EQ(Ask().status, 200);
  EXPECT_TRUE(WaitUntilRemaining(70)) << Remaining();
  EXPECT_EQ(Ask().Field("X-Tokens-Used"), "30") << "the client does not receive the cost field";
  EXPECT_TRUE(WaitUntilRemaining(40)) << Remaining();
}

TEST_F(ResponseCostTest, ChargesCostFromTrailer) {
  answer_ = "HTTP/1.1 200 OK\r\nTrailer: X-Tokens-Used\r\nTransfer-Encoding: chunked\r\n\r\n" +
            Chunked("streamed", 3, "X-Tokens-Used: 25\r\n");
  EXPECT_EQ(Ask().body, "streamed");
  EXPECT_TRUE(WaitUntilRemaining(75)) << Remaining();
}

TEST_F(ResponseCostTest, ChargesCostFromTrailerForHttp10Client) {
  answer_ = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
            Chunked("streamed", 3, "X-Tokens-Used: 25\r\n");
  Client old(gate_.at());
  old.Send("GET / HTTP/1.0\r\nHost: test\r\nx-api-key: a\r\n\r\n");
  EXPECT_EQ(old.Read().body, "streamed");
  EXPECT_TRUE(WaitUntilRemaining(75)) << Remaining();
}

TEST_F(ResponseCostTest, ChargesNothingForZeroCost) {
  answer_ = Http("200 OK", "X-Tokens-Used: 0\r\n");
  EXPECT_EQ(Ask().status, 200);
  EXPECT_TRUE(WaitUntilRemaining(100)) << Remaining();
}

TEST_F(ResponseCostTest, ChargesOneUnitWithoutValidCost) {
  for (const std::string_view lines :
       {"", "X-Tokens-Used: \r\n", "X-Tokens-Used: many\r\n", "X-Tokens-Used: -5\r\n",
        "X-Tokens-Used: 1.5\r\n", "X-Tokens-Used: 0x10\r\n", "X-Tokens-Used: 1e3\r\n",
        "X-Tokens-Used: 7 tokens\r\n"}) {
    gate_.Advance(10s);
    answer_ = Http("200 OK", lines);
    EXPECT_EQ(Ask().status, 200);
    // The gateway debits a cost before it sends the next response on any connection.
    (void)gate_.Get("/", "x-api-key: other\r\n");
    EXPECT_EQ(Remaining(), 99) << lines;
  }
}

TEST_F(ResponseCostTest, DebtDelaysTheNextRequest) {
  answer_ = Http("200 OK", "X-Tokens-Used: 250\r\n");
  EXPECT_EQ(Ask().status, 200);
  ASSERT_TRUE(WaitUntilRemaining(0));
  const HttpResponse denied = Ask();
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Json().at("retry_after_ms"), 1510)
      << "a debt of 150 units plus 1 unit, at 100 units per second";
  gate_.Advance(1509ms);
  EXPECT_EQ(Ask().status, 429);
  gate_.Advance(1ms);
  EXPECT_EQ(Ask().status, 200);
}

/// The default bound on debts is 10 times the limit, here 1,000 units.
TEST_F(ResponseCostTest, HugeCostBlocksClientForBoundedTime) {
  answer_ = Http("200 OK", "X-Tokens-Used: 99999999999999999999999\r\n");
  EXPECT_EQ(Ask().status, 200);
  ASSERT_TRUE(WaitUntilRemaining(0));
  EXPECT_EQ(Ask().Json().at("retry_after_ms"), 10'010)
      << "a debt of 1,000 units plus 1 unit, at 100 units per second";
  gate_.Advance(10'009ms);
  EXPECT_EQ(Ask().status, 429);
  gate_.Advance(1ms);
  EXPECT_EQ(Ask().status, 200);
}

TEST_F(ResponseCostTest, DeniedRequestIsNotCharged) {
  answer_ = Http("200 OK", "X-Tokens-Used: 100\r\n");
  EXPECT_EQ(Ask().status, 200);
  ASSERT_TRUE(WaitUntilRemaining(0));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask().status, 429);
  gate_.Advance(1s);
  EXPECT_EQ(Remaining(), 100);
}

TEST_F(ResponseCostTest, ChargesOneUnitForFailedRequest) {
  answer_ = "garbage\r\n\r\n";
  EXPECT_EQ(Ask().status, 502);
  EXPECT_TRUE(WaitUntilRemaining(99)) << Remaining();
}

TEST(RetriedResponseCostTest, ChargesRetriedRequestOnce) {
  ScriptedUpstream up([](ScriptedUpstream::Connection& connection) {
    HttpRequest request;
    if (!connection.Read(request)) return;
    if (connection.number() == 0) return connection.Reset();
    connection.Send(Http("200 OK", {}, "second"));
  });
  Gate gate(Routed(up.url(), {}, "rules: [{id: ten, per: header:x-api-key, limit: 10/h}]\n"));
  EXPECT_EQ(gate.Get("/", "x-api-key: a\r\n").body, "second");
  EXPECT_EQ(up.requests(), 2);
  EXPECT_EQ(gate.Remaining("ten", "a"), 9);
}

}  // namespace
}  // namespace tidegate::behaviour

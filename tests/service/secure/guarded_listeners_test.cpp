// SPDX-License-Identifier: Apache-2.0
// Tests that a reload cannot leave a listener without authentication by accident.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "service/secure/callers.hpp"
#include "support/wait.hpp"

namespace tidegate::service {
namespace {

using behaviour::ScriptedUpstream;
using testing::HasSubstr;

class GuardedListenersTest : public testing::Test {
 protected:
  static Config Public() {
    Config config = AllListeners();
    for (const ListenerId listener : {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp}) {
      SpecOf(config, listener).address = "0.0.0.0:0";
    }
    config.access.tokens = BothTokens();
    return config;
  }
  bool Reload(const Config& config) { return service_.server().Reload(config, problems_); }
  bool Guarded() {
    return HttpClient(service_.api()).Ask("/v1/peek", ByRule("per-key", "a")).status == 401 &&
           test::RespClient(At(service_, ListenerId::kResp)).Ask({"PING"}).starts_with("-NOAUTH");
  }

  Service service_{Public()};
  Problems problems_;
};

TEST_F(GuardedListenersTest, ReplacingTokensByCertificatesNeedsARestart) {
  Config config = Public();
  config.access.tokens.clear();
  for (const ListenerId listener : {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kResp}) {
    SpecOf(config, listener).tls = TlsWithClients(ListenTls::Clients::kRequired);
  }
  EXPECT_FALSE(Reload(config));
  EXPECT_EQ(problems_.size(), 3u);
  EXPECT_THAT(problems_.at(0).message, HasSubstr("restart"));
  EXPECT_TRUE(Guarded());
}

TEST_F(GuardedListenersTest, MovingToLoopbackNeedsARestart) {
  Config config = AllListeners();
  EXPECT_FALSE(Reload(config)) << "a reload that removes the tokens and needs a restart";
  EXPECT_TRUE(Guarded());
  config.access.tokens = BothTokens();
  EXPECT_TRUE(Reload(config)) << "a reload that keeps the tokens";
  EXPECT_TRUE(Guarded());
}

TEST_F(GuardedListenersTest, RemovingAllTokensOpensTheListeners) {
  Config config = Public();
  config.access.tokens.clear();
  EXPECT_TRUE(Reload(config));
  EXPECT_TRUE(test::WaitUntil([&] { return !Guarded(); }));
}

}  // namespace
}  // namespace tidegate::service

// SPDX-License-Identifier: Apache-2.0
#include "gateway/routing.hpp"

#include <gtest/gtest.h>

#include <memory_resource>

namespace tidegate {
namespace {

TEST(RouteRewriteTest, RewritesWholeSegments) {
  const auto rewritten = [](const std::string& prefix, const std::string& with,
                            std::string_view path) {
    std::pmr::monotonic_buffer_resource memory;
    Route route;
    route.spec.rewrite = RouteSpec::Rewrite{prefix, with};
    RequestView request;
    request.SetPath(ReadRequestPath(path, {}, memory).value());
    return std::string(route.Rewrite(path, request, memory).value());
  };
  EXPECT_EQ(rewritten("/v1", "/", "/v1/users"), "/users");
  EXPECT_EQ(rewritten("/v1", "/", "/v1"), "/");
  EXPECT_EQ(rewritten("/v1", "/", "/v1/"), "/");
  EXPECT_EQ(rewritten("/v1", "/", "/v10/users"), "/v10/users");
  EXPECT_EQ(rewritten("/v1", "/", "/other"), "/other");
  EXPECT_EQ(rewritten("/v1", "/api/v2", "/v1/x"), "/api/v2/x");
  EXPECT_EQ(rewritten("/v1", "/api", "/v1"), "/api");
  EXPECT_EQ(rewritten("/", "/api", "/x"), "/api/x");
  EXPECT_EQ(rewritten("/", "/api", "/"), "/api/");
}

class RoutingTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Routing> Make(const std::string& yaml, const Routing* before = nullptr) {
    auto reading = ParseConfig("listen: { gateway: 127.0.0.1:0 }\n" + yaml);
    EXPECT_TRUE(reading.config);
    Problems problems;
    return Routing::Make(*reading.config, before, routes_, upstreams_, problems);
  }
  RuleSlots routes_;
  RuleSlots upstreams_;
};

constexpr const char* kTwo =
    "routes:\n"
    "  - { id: a, match: { path: /a/** }, upstream: one }\n"
    "  - { id: rest, upstream: two }\n"
    "upstreams:\n"
    "  one: { targets: [http://127.0.0.1:1, http://127.0.0.1:2] }\n";

TEST_F(RoutingTest, FindsFirstMatchingRoute) {
  const auto routing = Make(std::string(kTwo) + "  two: { targets: http://127.0.0.1:3 }\n");
  RequestView view;
  view.method = "GET";
  view.host = "x";
  view.path = "/a/b";
  EXPECT_EQ(routing->Find(view)->spec.id, "a");
  view.path = "/b";
  EXPECT_EQ(routing->Find(view)->spec.id, "rest");
  EXPECT_EQ(routing->Find(view)->upstream, 1u);
}

TEST_F(RoutingTest, ReloadKeepsUnchangedUpstreamsAndMembers) {
  const auto before = Make(std::string(kTwo) + "  two: { targets: http://127.0.0.1:3 }\n");
  before->upstreams()[0]->members()->at(1)->healthy = false;
  (*before->upstreams()[1]->members())[0]->ejections = 3;
  const auto after =
      Make(std::string(kTwo) + "  two: { targets: http://127.0.0.1:3, max_requests: 5 }\n",
           before.get());
  // The unchanged upstream is the same object as before, including its health state.
  EXPECT_EQ(after->upstreams()[0], before->upstreams()[0]);
  EXPECT_NE(after->upstreams()[1], before->upstreams()[1]);
  // The member is the same server, so its state is kept.
  EXPECT_EQ((*after->upstreams()[1]->members())[0], (*before->upstreams()[1]->members())[0]);
}

}  // namespace
}  // namespace tidegate

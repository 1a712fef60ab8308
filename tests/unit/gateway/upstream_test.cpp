// SPDX-License-Identifier: Apache-2.0
#include "gateway/routing.hpp"

#include <gtest/gtest.h>

namespace tidegate {
namespace {

std::vector<net::SocketAddress> Addresses(std::initializer_list<const char*> hosts) {
  std::vector<net::SocketAddress> all;
  for (const char* const host : hosts) {
    for (const auto& address : net::LookUp(host, 80, net::Lookup::kNumber).addresses) {
      all.push_back(address);
    }
  }
  return all;
}

TEST(UpstreamTest, AddsMembersWhenNamesResolve) {
  UpstreamSpec spec{.name = "u"};
  spec.targets = {{.host = "127.0.0.1", .port = 81}, {.host = "some.name", .port = 80}};
  const auto upstream = Upstream::Make(spec, nullptr).value();
  ASSERT_EQ(upstream->names(), std::vector<std::size_t>{1});
  ASSERT_EQ(upstream->members()->size(), 1u);
  EXPECT_EQ((*upstream->members())[0]->text, "127.0.0.1:81");
  const auto version = upstream->version();
  upstream->SetAddresses(1, Addresses({"127.0.0.2", "127.0.0.3"}));
  EXPECT_GT(upstream->version(), version);
  ASSERT_EQ(upstream->members()->size(), 3u);
  EXPECT_EQ((*upstream->members())[2]->text, "127.0.0.3:80");
  EXPECT_EQ((*upstream->members())[2]->authority, "some.name");
}

TEST(UpstreamTest, KeepsStateOfMembersThatStay) {
  UpstreamSpec spec{.name = "u"};
  spec.targets = {{.host = "some.name", .port = 80}};
  const auto upstream = Upstream::Make(spec, nullptr).value();
  upstream->SetAddresses(0, Addresses({"127.0.0.2", "127.0.0.3"}));
  const auto before = upstream->members();
  (*before)[1]->healthy = false;
  const auto version = upstream->version();
  // The same addresses in another order.
  upstream->SetAddresses(0, Addresses({"127.0.0.3", "127.0.0.2"}));
  EXPECT_EQ(upstream->version(), version);
  upstream->SetAddresses(0, {});  // The name server fails for a moment.
  EXPECT_EQ(upstream->version(), version);
  upstream->SetAddresses(0, Addresses({"127.0.0.3", "127.0.0.4"}));
  const auto after = upstream->members();
  EXPECT_EQ((*after)[0], (*before)[1]);
  EXPECT_FALSE((*after)[0]->healthy);
  EXPECT_TRUE((*after)[1]->healthy);
}

TEST(UpstreamTest, WritesAuthorityLikeAHostField) {
  UpstreamSpec spec{.name = "u"};
  spec.targets = {{.host = "::1", .port = 80}, {.host = "127.0.0.1", .port = 8080}};
  const auto upstream = Upstream::Make(spec, nullptr).value();
  EXPECT_EQ((*upstream->members())[0]->authority, "[::1]");
  EXPECT_EQ((*upstream->members())[1]->authority, "127.0.0.1:8080");
}

}  // namespace
}  // namespace tidegate

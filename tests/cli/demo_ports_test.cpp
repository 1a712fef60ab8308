// SPDX-License-Identifier: Apache-2.0
// The ports of the demo's listeners, chosen from the command line and from the free ones.
#include "cli/demo_ports.hpp"

#include <gtest/gtest.h>

#include "net/endpoint.hpp"
#include "net/listener.hpp"

namespace tidegate::cli {
namespace {

/// Returns a port of loopback that was free a moment ago.
std::uint16_t FreePort() {
  const auto socket = net::Listen(net::Endpoint::Parse("127.0.0.1:0").value());
  return net::Endpoint::OfSocket(socket->get()).port();
}

std::string At(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

TEST(DemoPorts, KeepsUsualPortsThatAreFree) {
  Config::Listen listen;
  listen.gateway = At(FreePort());
  listen.api = At(FreePort());
  listen.resp = At(FreePort());
  listen.admin = At(FreePort());
  const Config::Listen before = listen;
  EXPECT_TRUE(ChooseDemoPorts({}, listen).value().empty());
  EXPECT_EQ(listen, before);
}

TEST(DemoPorts, MovesListenerWhenItsPortIsAssignedToAnother) {
  const std::uint16_t usual = FreePort();
  Config::Listen listen;
  listen.gateway = At(FreePort());
  listen.api = At(usual);
  listen.resp = At(FreePort());
  listen.admin = At(FreePort());
  const auto moved = ChooseDemoPorts({.resp = usual}, listen).value();
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].listener, "api");
  EXPECT_EQ(moved[0].taken, At(usual));
  EXPECT_EQ(moved[0].option, "--api-port");
  EXPECT_EQ(listen.resp.address, At(usual));
  EXPECT_EQ(listen.api.address, At(0));
}

}  // namespace
}  // namespace tidegate::cli

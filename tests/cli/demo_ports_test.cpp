// SPDX-License-Identifier: Apache-2.0
// The ports of the demo's listeners: ports from the command line, and free ports for the others.
#include "cli/serve.hpp"

#include <gtest/gtest.h>

#include "support/ports.hpp"

namespace tidegate::cli {
namespace {

std::string At(int port) { return "127.0.0.1:" + std::to_string(port); }

TEST(DemoPortsTest, KeepsUsualPortsThatAreFree) {
  Config::Listen listen;
  listen.gateway = At(test::FreePort());
  listen.api = At(test::FreePort());
  listen.resp = At(test::FreePort());
  listen.admin = At(test::FreePort());
  const Config::Listen before = listen;
  EXPECT_TRUE(ChooseDemoPorts({}, listen).value().empty());
  EXPECT_EQ(listen, before);
}

TEST(DemoPortsTest, MovesListenerWhenItsPortIsAssignedToAnother) {
  const auto usual = static_cast<std::uint16_t>(test::FreePort());
  Config::Listen listen;
  listen.gateway = At(test::FreePort());
  listen.api = At(usual);
  listen.resp = At(test::FreePort());
  listen.admin = At(test::FreePort());
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

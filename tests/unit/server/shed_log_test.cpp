// SPDX-License-Identifier: Apache-2.0
#include "server/listener_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class ShedLogTest : public testing::Test {
 protected:
  std::string Note(net::Shed why, std::chrono::seconds at) {
    testing::internal::CaptureStderr();
    log_.Note(why, &peer_, ShedLog::Clock::time_point{1h} + at);
    return testing::internal::GetCapturedStderr();
  }

  net::Peer peer_{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7}, 1};
  ShedLog log_{"api",
               {.limit = 200, .clients = 175, .upstreams = 175, .admin = 188},
               {.connections = 50, .connections_per_address = 5}};
};

TEST_F(ShedLogTest, LogsCauseAndLimitOfShedRequests) {
  EXPECT_THAT(Note(net::Shed::kDescriptors, 0s),
              AllOf(HasSubstr("running out of file descriptors"), HasSubstr("LimitNOFILE"),
                    HasSubstr("listener=api"), HasSubstr("descriptors=200"),
                    HasSubstr("reserved=25"), HasSubstr("rejected=1")));
  EXPECT_THAT(Note(net::Shed::kConnections, 0s),
              AllOf(HasSubstr("limits.connections"), HasSubstr("limit=50")));
  EXPECT_THAT(Note(net::Shed::kAddress, 0s),
              AllOf(HasSubstr("limits.connections_per_address"), HasSubstr("peer=192.0.2.7"),
                    HasSubstr("limit=5")));
}

TEST_F(ShedLogTest, WritesOneLinePerMinuteForEachReason) {
  EXPECT_NE(Note(net::Shed::kConnections, 0s), "");
  EXPECT_EQ(Note(net::Shed::kConnections, 1s), "");
  EXPECT_EQ(Note(net::Shed::kConnections, 59s), "");
  EXPECT_NE(Note(net::Shed::kDescriptors, 59s), "");
  EXPECT_THAT(Note(net::Shed::kConnections, 60s), HasSubstr("rejected=3"));
}

}  // namespace
}  // namespace tidegate

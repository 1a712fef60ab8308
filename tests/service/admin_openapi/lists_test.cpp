// SPDX-License-Identifier: Apache-2.0
// Checks how many items of a long list /v1/inspect shows.
#include <gtest/gtest.h>

#include "redis/redis_server.hpp"
#include "service/admin_openapi/operator.hpp"
#include "support/wait.hpp"

namespace tidegate::openapi_test {
namespace {

using namespace std::chrono_literals;
using service::Service;

constexpr std::string_view kRules =
    "rules: [ { id: log, per: client_ip, limit: 150/h, algorithm: sliding_log } ]\n";
constexpr std::string_view kKeyBody = R"({"rule":"log","identity":"192.0.2.1"})";

/// Returns how many of 150 stored entries /v1/inspect shows.
std::size_t ShownItems(const std::string& store) {
  Service service(store + std::string(kRules));
  EXPECT_TRUE(test::WaitUntil(
      [&] { return AskAdmin(service.admin(), "POST", "/v1/lift", kKeyBody).status == 200; }));
  for (int i = 0; i < 150; ++i) {
    service.Advance(1ms);
    EXPECT_EQ(service.Decide(kKeyBody).status, 200);
  }
  const Reply reply = AskAdmin(service.admin(), "POST", "/v1/inspect", kKeyBody);
  return boost::json::parse(reply.body).at("state").as_array().size();
}

TEST(AdminInspectTest, ShowsHundredItemsOfListInRedis) {
  const redis_test::RedisServer redis;
  EXPECT_EQ(
      ShownItems("store: { url: \"" + redis.url() + "\", on_failure: closed, deadline: 2s }\n"),
      100u);
}

TEST(AdminInspectTest, ShowsHundredItemsOfListInMemory) { EXPECT_EQ(ShownItems({}), 100u); }

}  // namespace
}  // namespace tidegate::openapi_test

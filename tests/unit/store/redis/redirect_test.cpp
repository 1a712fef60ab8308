// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_error.hpp"

#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

constexpr auto kMoved = Redirect::Kind::kMoved;
constexpr auto kAsk = Redirect::Kind::kAsk;

TEST(RedirectTest, ReadsEveryFormOfRedirection) {
  struct Case {
    std::string error;
    Redirect::Kind kind;
    Slot slot;
    std::string host;
    std::uint16_t port;
  };
  const std::string longest(253, 'a');
  for (const auto& [error, kind, slot, host, port] :
       {Case{"MOVED 3999 10.0.0.7:6381", kMoved, 3999, "10.0.0.7", 6381},
        {"ASK 0 redis-1.local:1", kAsk, 0, "redis-1.local", 1},
        {"ASK 16383 fd00::7:65535", kAsk, 16383, "fd00::7", 65535},
        {"MOVED 1 [fd00::7]:6381", kMoved, 1, "fd00::7", 6381},
        {"MOVED 1 ::1:6381", kMoved, 1, "::1", 6381},
        {"MOVED 3999 :6381", kMoved, 3999, "", 6381},
        {"MOVED 3999 ?:6381", kMoved, 3999, "", 6381},
        {"MOVED 3999 " + longest + ":6381", kMoved, 3999, longest, 6381}}) {
    const auto redirect = ReadRedirect(error);
    ASSERT_TRUE(redirect) << error;
    EXPECT_EQ(*redirect, (Redirect{kind, slot, {.host = host, .port = port}})) << error;
  }
}

TEST(RedirectTest, RejectsMalformedRedirection) {
  const std::string too_long = "MOVED 1 " + std::string(254, 'a') + ":6381";
  for (const std::string& error : {std::string{},
                                   std::string{"MOVED"},
                                   std::string{"MOVED "},
                                   std::string{"MOVED 1"},
                                   std::string{"MOVED 1 "},
                                   std::string{"MOVED 1 a"},
                                   std::string{"MOVED 1 a:"},
                                   std::string{"MOVED 16384 a:1"},
                                   std::string{"MOVED -1 a:1"},
                                   std::string{"MOVED +1 a:1"},
                                   std::string{"MOVED 1x a:1"},
                                   std::string{"MOVED  1 a:1"},
                                   std::string{"MOVED 1  a:1"},
                                   std::string{"MOVED 1 a:0"},
                                   std::string{"MOVED 1 a:65536"},
                                   std::string{"MOVED 1 a:-1"},
                                   std::string{"MOVED 1 a:+1"},
                                   std::string{"MOVED 1 a:1 "},
                                   std::string{"MOVED 1 a:1 more"},
                                   std::string{"MOVED 1 a:99999999999999999999"},
                                   std::string{"MOVED 1 a b:1"},
                                   std::string{"MOVED 1 a\n:1"},
                                   std::string{"MOVED 1 a\x7f:1"},
                                   std::string{"MOVED 1 []:1"},
                                   std::string{"MOVED 1 [a:1"},
                                   std::string{"MOVED 1 a]:1"},
                                   std::string{"moved 1 a:1"},
                                   std::string{"MOVEDX 1 a:1"},
                                   std::string{"-MOVED 1 a:1"},
                                   std::string{"ASKING 1 a:1"},
                                   std::string{"ERR MOVED 1 a:1"},
                                   std::string("MOVED 1 a\0:1", 12),
                                   too_long}) {
    EXPECT_FALSE(ReadRedirect(error)) << error;
  }
}

}  // namespace
}  // namespace tidegate::redis

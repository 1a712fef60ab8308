// SPDX-License-Identifier: Apache-2.0
#include "store/redis/greeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::redis {
namespace {

using Progress = Greeting::Progress;
using Type = Reply::Type;
using testing::HasSubstr;
using testing::Not;

Reply Of(Type type, std::string_view text = {}) {
  Reply reply;
  reply.type = type;
  reply.text = text;
  return reply;
}
constexpr std::string_view kSha = "0123456789012345678901234567890123456789";

Greeting::Options Plain() {
  Greeting::Options options;
  options.name = "tidegate";
  options.channel = "tg:invalidate";
  options.script = "return 1";
  return options;
}

TEST(GreetingTest, SendsSentinelTwoSubscriptionsAndNoScript) {
  Greeting::Options options = Plain();
  options.script = {};
  options.channel = "+switch-master";
  options.also = "+promoted-slave";
  for (const bool may : {true, false}) {
    Greeting greeting(options);
    std::string out;
    greeting.Begin(out);
    EXPECT_THAT(out, HasSubstr("+promoted-slave"));
    EXPECT_THAT(out, Not(HasSubstr("LOAD")));
    EXPECT_EQ(greeting.OnReply(Of(Type::kArray)), Progress::kMore);
    EXPECT_EQ(greeting.OnReply(Of(Type::kPush)), Progress::kMore);
    Reply message = Of(Type::kPush);
    message.elements = {Of(Type::kText, "message"), Of(Type::kText, "+switch-master"),
                        Of(Type::kText, "m a 1 b 2")};
    EXPECT_EQ(greeting.OnReply(message), Progress::kMore);
    Reply done = Of(Type::kPush);
    done.elements = {Of(Type::kText, "subscribe")};
    if (!may) done = Of(Type::kError, "NOPERM this user has no permissions to access the channel");
    EXPECT_EQ(greeting.OnReply(done), Progress::kReady) << may;
    EXPECT_TRUE(greeting.subscribed());
  }
}

TEST(GreetingTest, FailsOnReplica) {
  Greeting::Options options = Plain();
  options.master_only = true;
  for (const char* role : {"master", "slave", "sentinel", ""}) {
    Greeting greeting(options);
    std::string out;
    greeting.Begin(out);
    EXPECT_THAT(out, HasSubstr("ROLE"));
    EXPECT_EQ(greeting.OnReply(Of(Type::kArray)), Progress::kMore);
    Reply role_reply = Of(Type::kArray);
    role_reply.elements = {Of(Type::kText, role)};
    const bool master = std::string_view(role) == "master";
    EXPECT_EQ(greeting.OnReply(role_reply), master ? Progress::kMore : Progress::kFailed) << role;
    if (!master) {
      EXPECT_EQ(greeting.kind(), ErrorKind::kReadOnly);
    }
  }
}

TEST(GreetingTest, SendsAllCommandsAtOnceAndWaitsForAllReplies) {
  Greeting greeting(Plain());
  std::string out;
  greeting.Begin(out);
  EXPECT_THAT(out, HasSubstr("HELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n"));
  EXPECT_THAT(out, Not(HasSubstr("AUTH")));
  EXPECT_THAT(out, Not(HasSubstr("SELECT")));
  EXPECT_EQ(greeting.OnReply(Of(Type::kArray)), Progress::kMore);
  EXPECT_EQ(greeting.OnReply(Of(Type::kPush)), Progress::kMore);
  EXPECT_TRUE(greeting.subscribed());
  EXPECT_EQ(greeting.OnReply(Of(Type::kPush)), Progress::kMore)
      << "the push about another node's refund was taken for a reply";
  EXPECT_EQ(greeting.OnReply(Of(Type::kText, kSha)), Progress::kReady);
  EXPECT_EQ(greeting.sha(), kSha);
}

TEST(GreetingTest, SendsUserPasswordAndDatabase) {
  Greeting::Options options = Plain();
  options.user = "app";
  options.password = "secret";
  options.database = 7;
  Greeting greeting(options);
  std::string out;
  greeting.Begin(out);
  EXPECT_THAT(out, HasSubstr("AUTH\r\n$3\r\napp\r\n$6\r\nsecret\r\n"));
  EXPECT_THAT(out, HasSubstr("SELECT\r\n$1\r\n7\r\n"));
  EXPECT_EQ(greeting.OnReply(Of(Type::kArray)), Progress::kMore);
  EXPECT_EQ(greeting.OnReply(Of(Type::kText, "OK")), Progress::kMore);
}

TEST(GreetingTest, SendsPasswordAloneForDefaultUser) {
  Greeting::Options options = Plain();
  options.password = "secret";
  Greeting greeting(options);
  std::string out;
  greeting.Begin(out);
  EXPECT_THAT(out, HasSubstr("AUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n"));
}

TEST(GreetingTest, ReportsWhatToDoAboutProblem) {
  const auto problem_of = [](std::string_view error) {
    Greeting greeting(Plain());
    std::string out;
    greeting.Begin(out);
    EXPECT_EQ(greeting.OnReply(Of(Type::kError, error)), Progress::kFailed);
    return greeting.problem();
  };
  EXPECT_THAT(problem_of("NOAUTH HELLO must be called with the client already authenticated"),
              HasSubstr("store.url"));
  EXPECT_THAT(problem_of("WRONGPASS invalid username-password pair"),
              HasSubstr("rejected the user"));
  EXPECT_THAT(problem_of("ERR unknown command `HELLO`"), HasSubstr("Redis 6.2"));
}

TEST(GreetingTest, BecomesReadyWithoutPermissionToSubscribe) {
  Greeting greeting(Plain());
  std::string out;
  greeting.Begin(out);
  EXPECT_EQ(greeting.OnReply(Of(Type::kArray)), Progress::kMore);
  EXPECT_EQ(greeting.OnReply(Of(Type::kError,
                                "NOPERM this user has no permissions to access one "
                                "of the channels used as arguments")),
            Progress::kMore);
  EXPECT_FALSE(greeting.subscribed());
  EXPECT_EQ(greeting.OnReply(Of(Type::kText, kSha)), Progress::kReady);
}

}  // namespace
}  // namespace tidegate::redis

// SPDX-License-Identifier: Apache-2.0
// The server that commands connect to, requests that they do not send, and messages about problems.
#include <gmock/gmock.h>

#include "cli/command_case.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {
namespace {

using cli_test::FakeAdmin;
using cli_test::ReceivedRequest;
using cli_test::Reply;
using testing::HasSubstr;
using testing::Not;

using CommandClientTest = cli_test::CommandCase;

TEST_F(CommandClientTest, ReadsAdminAddressFromEnvironment) {
  setenv("TIDEGATE_ADMIN", fake_.address().c_str(), 1);
  EXPECT_EQ(Status({}, console_), kOk) << Err();
  EXPECT_EQ(fake_.Requests().size(), 1u);
  setenv("TIDEGATE_ADMIN", "host:0", 1);
  EXPECT_EQ(Status(To(fake_), console_), kOk) << "the option does not override the environment";
  EXPECT_EQ(Status({}, console_), kUsage);
  EXPECT_THAT(Err(), HasSubstr("tidegate status: TIDEGATE_ADMIN: \"host:0\" has no port"));
  setenv("TIDEGATE_ADMIN", "", 1);
  EXPECT_EQ(AdminClient::Make({})->address().Text(), "127.0.0.1:9180")
      << "an empty variable was not ignored";
  unsetenv("TIDEGATE_ADMIN");
}

TEST_F(CommandClientTest, ReadsApiAddressFromEnvironment) {
  FakeAdmin api([](const ReceivedRequest&) { return Reply{200, R"({"allowed":true})"}; });
  setenv("TIDEGATE_ADMIN", "host:0", 1);
  setenv("TIDEGATE_SERVER", api.address().c_str(), 1);
  EXPECT_EQ(Decide({.rule = "r", .identity = "a"}, console_), kOk) << Err();
  EXPECT_EQ(AdminClient::Make({}, kRespPort, "--resp")->address().host, "127.0.0.1")
      << "the address of the RESP listener was read from a variable";
  unsetenv("TIDEGATE_ADMIN");
  unsetenv("TIDEGATE_SERVER");
}

TEST_F(CommandClientTest, RejectsRequestThatIsNotUtf8) {
  EXPECT_EQ(Inspect({To(fake_), {.rule = "r", .identity = "a\xff"}}, console_), kUsage);
  EXPECT_EQ(Explain({.client = To(fake_), .path = "/", .headers = {"x: \xc3("}}, console_), kUsage);
  EXPECT_EQ(Decide({.client = To(fake_), .rule = "r", .identity = "\xed\xa0\x80"}, console_),
            kUsage);
  EXPECT_THAT(Err(), testing::AllOf(HasSubstr("tidegate inspect: the request is not valid UTF-8: "),
                                    HasSubstr("\"a\\xff\"")));
  EXPECT_THAT(Err(), testing::AllOf(HasSubstr("tidegate explain: the request is not valid UTF-8: "),
                                    HasSubstr("\"\\xc3(\"")));
  EXPECT_TRUE(fake_.Requests().empty());
  EXPECT_EQ(Inspect({To(fake_), {.rule = "r", .identity = "\u00e9\U0001F600"}}, console_), kOk);
}

TEST_F(CommandClientTest, SuggestsOptionWhenServerHasNoSuchPath) {
  constexpr const char* kNothing = R"({"title":"Not Found","status":404,"detail":"nothing here"})";
  (void)Printed(
      kNothing, [&](const ClientOptions& options) { return Status(options, console_); }, 404);
  EXPECT_EQ(exit_, kUsage);
  EXPECT_EQ(Err(),
            "tidegate status: nothing here; is this the admin port? Name another with "
            "--admin\n");
  (void)Printed(
      kNothing,
      [&](const ClientOptions& options) {
        return Decide({.client = options, .rule = "r", .identity = "a"}, console_);
      },
      404);
  EXPECT_THAT(Err(), HasSubstr("; is this the port of the API? Name another with --server\n"));
  (void)Printed(R"({"detail":"there is no rule 'r'","pointer":"/rule"})",
                [&](const ClientOptions& options) {
                  return Decide({.client = options, .rule = "r", .identity = "a"}, console_);
                },
                404);
  EXPECT_THAT(Err(), Not(HasSubstr("is this")))
      << "the hint doubts the port although the path exists";
}

TEST_F(CommandClientTest, SendsRequestWithoutIdentityAndPrintsErrorOfServer) {
  EXPECT_EQ(Inspect({To(fake_), {.rule = "all"}}, console_), kOk) << Err();
  EXPECT_EQ(fake_.Requests().back().body, R"({"rule":"all"})");
  EXPECT_EQ(Explain({.client = To(fake_), .selector = {.rule = "all"}}, console_), kOk) << Err();
  EXPECT_EQ(fake_.Requests().back().body, R"({"rule":"all"})");
  (void)Printed(R"({"detail":"the identity has no value for client_ip","pointer":"/identity"})",
                [&](const ClientOptions& options) {
                  return Inspect({options, {.rule = "r"}}, console_);
                },
                400);
  EXPECT_EQ(exit_, kUsage);
  EXPECT_EQ(Err(),
            "tidegate inspect: the identity has no value for client_ip (at /identity); name the "
            "identity: IDENTITY, --key KEY or --part SOURCE=VALUE\n");
}

TEST_F(CommandClientTest, PrintsDecisionOfLocalPolicy) {
  const auto decided = [&](const std::string& reason) {
    return Printed(R"({"allowed":true,"rule":"r","limit":50,"remaining":49,"decided_by":"local")" +
                       reason + "}",
                   [&](const ClientOptions& options) {
                     return Decide({.client = options, .rule = "r", .identity = "a"}, console_);
                   });
  };
  EXPECT_EQ(decided(R"(,"reason":"timeout")"),
            "allowed, 49 of 50 left by that node's share: the store does not answer (timeout)\n");
  EXPECT_EQ(decided(""), "allowed, 49 of 50 left by that node's share: the store does not answer\n")
      << "a response of an older server, which has no reason";
}

TEST_F(CommandClientTest, PrintsDecisionOfAllowedKey) {
  EXPECT_EQ(Printed(R"({"allowed":true,"exempt":true,"rule":"r","decided_by":"operator",)"
                    R"("reason":"exempt","rules":[]})",
                    [&](const ClientOptions& options) {
                      return Decide({.client = options, .rule = "r", .identity = "a"}, console_);
                    }),
            "allowed without being counted: by an operator\n");
  EXPECT_EQ(exit_, kOk);
}

TEST_F(CommandClientTest, PrintsDecisionOfBannedKey) {
  EXPECT_EQ(
      Printed(R"({"allowed":false,"denied":true,"banned":true,"rule":"r",)"
              R"("retry_after_ms":60000,"decided_by":"operator","reason":"banned","rules":[]})",
              [&](const ClientOptions& options) {
                return Decide({.client = options, .rule = "r", .identity = "a"}, console_);
              },
              403),
      "denied: banned by an operator, try again in 1 min\n");
  EXPECT_EQ(exit_, kRuntime);
}

}  // namespace
}  // namespace tidegate::cli

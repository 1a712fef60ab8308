// SPDX-License-Identifier: Apache-2.0
// The commands against a real server in this process.
#include <gmock/gmock.h>

#include "cli/command_case.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/top_view.hpp"
#include "service/fixture.hpp"

namespace tidegate::cli {
namespace {

using service::Service;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CommandsOnRealServerTest : public cli_test::CommandCase {
 protected:
  static ClientOptions At(const net::Endpoint& listener) {
    return {.server = listener.Text(), .timeout = std::chrono::seconds{10}};
  }
  /// Returns the output on both streams since the last call.
  std::string Output() {
    std::string output = Out() + Err();
    out_.str("");
    err_.str("");
    return output;
  }
  std::string Explained(const Service& service, const std::string& path = "/v1/x") {
    EXPECT_EQ(Explain({.client = At(service.admin()),
                       .path = path,
                       .headers = {"x-api-key: abc"},
                       .client_ip = "203.0.113.7"},
                      console_),
              kOk)
        << Err();
    return Output();
  }
  std::string Changed(const Service& service, Change change, const KeySelector& selector) {
    EXPECT_EQ(ChangeKey({.change = change, .client = At(service.admin()), .selector = selector},
                        console_),
              kOk)
        << Err();
    return Output();
  }
};

constexpr const char* kRules =
    "rules:\n"
    "  - {id: all, per: const, limit: 100/s}\n"
    "  - {id: per-key, per: header:x-api-key, limit: 5/m}\n"
    "deny: [{path: /bad}]\n";

TEST_F(CommandsOnRealServerTest, ExplainsDecisionsOfOperators) {
  const Service service(kRules);
  const KeySelector selector{.rule = "per-key", .identity = "abc"};
  EXPECT_THAT(Changed(service, Change::kBan, selector), StartsWith("banned: per-key "));
  const std::string banned = Explained(service);
  EXPECT_THAT(banned, StartsWith("would be denied (403): an operator banned the key\n"));
  EXPECT_THAT(banned, HasSubstr("\nall  not evaluated\n"));
  EXPECT_THAT(banned, HasSubstr("\nper-key  banned by an operator\n"));
  EXPECT_EQ(Decide({.client = At(service.api()), .rule = "per-key", .identity = "abc"}, console_),
            kRuntime);
  EXPECT_THAT(Output(), StartsWith("denied: banned by an operator"));
  (void)Changed(service, Change::kAllow, selector);
  const std::string allowed = Explained(service);
  EXPECT_THAT(allowed, StartsWith("would be allowed (200): rule all decides\n"));
  EXPECT_THAT(allowed, HasSubstr("\nper-key  allows, uncounted: by an operator\n"));
  (void)Changed(service, Change::kAllow, {.rule = "all"});
  EXPECT_THAT(Explained(service),
              StartsWith("would be allowed (200): an operator allowed the key\n"));
  EXPECT_THAT(Explained(service, "/bad"),
              StartsWith("would be denied (403): deny[0] (/bad) rejects the request\n"));
}

TEST_F(CommandsOnRealServerTest, AcceptsMissingIdentityForRuleThatCountsByConst) {
  const Service service(kRules);
  EXPECT_EQ(Inspect({At(service.admin()), {.rule = "all"}}, console_), kOk) << Err();
  EXPECT_THAT(Output(), HasSubstr("key       const\n"));
  EXPECT_EQ(Explain({.client = At(service.admin()), .selector = {.rule = "all"}}, console_), kOk);
  EXPECT_THAT(Output(), StartsWith("would be allowed (200): rule all decides\n"));
  EXPECT_EQ(Inspect({At(service.admin()), {.rule = "per-key"}}, console_), kUsage);
  EXPECT_THAT(Output(), HasSubstr("header:x-api-key"));
  EXPECT_EQ(Explain({.client = At(service.admin()), .selector = {.rule = "per-key"}}, console_),
            kUsage);
  EXPECT_THAT(Output(), HasSubstr("; name the identity: IDENTITY, --key KEY or --part"));
}

TEST_F(CommandsOnRealServerTest, SuggestsOtherPortOfServerForUnknownPath) {
  const Service service(kRules);
  EXPECT_EQ(Status(At(service.api()), console_), kUsage);
  EXPECT_THAT(Output(), HasSubstr("; is this the admin port? Name another with --admin\n"));
  EXPECT_EQ(Decide({.client = At(service.admin()), .rule = "all", .identity = "a"}, console_),
            kUsage);
  EXPECT_THAT(Output(), HasSubstr("; is this the port of the API? Name another with --server\n"));
  EXPECT_EQ(Decide({.client = At(service.api()), .rule = "none", .identity = "a"}, console_),
            kUsage);
  EXPECT_THAT(Output(), Not(HasSubstr("is this")))
      << "the hint doubts the port although only the rule is unknown";
}

TEST_F(CommandsOnRealServerTest, LiftsOverrideOfRemovedRuleByKey) {
  Service service(kRules);
  (void)Changed(service, Change::kBan, {.rule = "per-key", .identity = "abc"});
  ASSERT_TRUE(service.Reload("rules:\n  - {id: all, per: const, limit: 100/s}\n"));
  EXPECT_EQ(ChangeKey({.change = Change::kLift,
                       .client = At(service.admin()),
                       .selector = {.rule = "per-key", .identity = "abc"}},
                      console_),
            kUsage);
  EXPECT_THAT(Output(), HasSubstr("name the key as `tidegate overrides` shows it: --key KEY\n"));
  EXPECT_EQ(ListOverrides(At(service.admin()), console_), kOk);
  const std::string listed = Output();
  const std::size_t begin = listed.find("header:");
  const std::string key = listed.substr(begin, listed.find(' ', begin) - begin);
  EXPECT_THAT(Changed(service, Change::kLift, {.rule = "per-key", .key = key}),
              StartsWith("lifted: "));
}

TEST_F(CommandsOnRealServerTest, ExplainsDecisionsWithoutTheStore) {
  const Service service(
      "store: {url: \"redis://127.0.0.1:1\"}\n"  // No server listens on port 1.
      "identity: {hmac_key: 0123456789abcdef0123456789abcdef}\n"
      "rules:\n"
      "  - {id: mine, per: client_ip, limit: 100/s, on_failure: local}\n"
      "  - {id: soft, per: client_ip, limit: 5/m, on_failure: open}\n"
      "  - {id: hard, per: client_ip, limit: 5/m, on_failure: closed, match: {path: /pay}}\n");
  // The reason depends on whether the first attempt to connect has already failed.
  const std::string trouble = "  the store does not answer \\([a-z_]+\\), and the policy is ";
  const std::string passes = Explained(service);
  EXPECT_THAT(
      passes,
      StartsWith("would be allowed (200): rule mine decides (the store does not answer)\n"));
  EXPECT_THAT(
      passes,
      ContainsRegex("\nmine" + trouble +
                    "local: allows by this node's share, 100 of 100 left, 99 after the request\n"));
  EXPECT_THAT(passes, ContainsRegex("\nsoft" + trouble + "open: allows\n"));
  const std::string refused = Explained(service, "/pay");
  EXPECT_THAT(refused,
              StartsWith("would be denied (503): rule hard decides (the store does not answer)\n"));
  EXPECT_THAT(refused, ContainsRegex("\nhard" + trouble + "closed: denies, try again in 1 s\n"));
  EXPECT_EQ(
      Decide({.client = At(service.api()), .rule = "hard", .identity = "203.0.113.7"}, console_),
      kRuntime)
      << "the exit code is not that of a denial";
}

TEST_F(CommandsOnRealServerTest, TopCountsEachRequestOnce) {
  Service service(
      "rules:\n"
      "  - {id: a, per: const, limit: 20/h}\n"
      "  - {id: b, per: client_ip, limit: 1000/h}\n"
      "  - {id: c, per: path, limit: 1000/h}\n");
  const auto client = AdminClient::Make(At(service.admin()));
  ASSERT_TRUE(client);
  const auto before = TakeSample(*client);
  ASSERT_TRUE(before);
  for (int i = 0; i < 30; ++i) {
    (void)service.Decide(R"({"request":{"path":"/","peer":"203.0.113.7"}})");
  }
  // The server updates its hot keys every half second.
  auto now = TakeSample(*client);
  const auto total = [&] { return JsonView(now->hot).Object("requests").Int("total"); };
  const auto began = std::chrono::steady_clock::now();
  while (now && total() < 30 && std::chrono::steady_clock::now() - began < service::kPatience) {
    now = TakeSample(*client);
  }
  ASSERT_TRUE(now);
  EXPECT_EQ(total(), 30);
  const View view = ViewOf(&*before, *now);
  const double seconds = std::chrono::duration<double>(view.interval).count();
  ASSERT_TRUE(view.requests);
  EXPECT_NEAR(*view.requests * seconds, 30, 0.01);
  EXPECT_NEAR(view.denied_requests * seconds, 10, 0.01);
  EXPECT_NEAR(view.decisions * seconds, 90, 0.01);
  const JsonView hot = JsonView(view.hot).Object("requests");
  EXPECT_EQ(hot.Int("total"), 30);
  EXPECT_EQ(hot.Objects("keys").at(0).Int("count"), 30)
      << "some requests were not counted for this key";
}

TEST_F(CommandsOnRealServerTest, ChangeReportsNotAppliedWithoutRedis) {
  const Service service(
      "store: {url: \"redis://127.0.0.1:1\", on_failure: open}\n"  // No server listens on port 1.
      "identity: {hmac_key: 0123456789abcdef0123456789abcdef}\n"
      "rules:\n  - {id: mine, per: client_ip, limit: 100/s}\n");
  for (const Change change : {Change::kBan, Change::kReset}) {
    EXPECT_EQ(ChangeKey({.change = change,
                         .client = At(service.admin()),
                         .selector = {.rule = "mine", .identity = "203.0.113.7"}},
                        console_),
              kNoAnswer);
    const std::string output = Output();
    EXPECT_THAT(output, StartsWith("tidegate " + std::string(Name(change)) + ": not applied: "));
    EXPECT_THAT(output, HasSubstr("; try again\n"));
  }
}

}  // namespace
}  // namespace tidegate::cli

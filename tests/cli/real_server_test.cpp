// SPDX-License-Identifier: Apache-2.0
// The commands against a server as it is, in this process.
#include <gmock/gmock.h>

#include "cli/change.hpp"
#include "cli/command_case.hpp"
#include "cli/decide.hpp"
#include "cli/exit.hpp"
#include "cli/explain.hpp"
#include "cli/inspect.hpp"
#include "cli/listings.hpp"
#include "cli/status.hpp"
#include "cli/top_view.hpp"
#include "service/fixture.hpp"

namespace tidegate::cli {
namespace {

using service::Service;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RealServerTest : public cli_test::CommandCase {
 protected:
  static AskOptions At(const net::Endpoint& door) {
    return {.server = door.Text(), .timeout = std::chrono::seconds{10}};
  }
  /// What was printed since the last time, on both.
  std::string Said() {
    std::string said = Out() + Err();
    out_.str("");
    err_.str("");
    return said;
  }
  std::string Explained(const Service& service, const std::string& path = "/v1/x") {
    EXPECT_EQ(Explain({.ask = At(service.admin()),
                       .path = path,
                       .headers = {"x-api-key: abc"},
                       .client_ip = "203.0.113.7"},
                      console_),
              kOk)
        << Err();
    return Said();
  }
  std::string Changed(const Service& service, Change change, const Whom& whom) {
    EXPECT_EQ(ChangeKey({.change = change, .ask = At(service.admin()), .whom = whom}, console_),
              kOk)
        << Err();
    return Said();
  }
};

constexpr const char* kRules =
    "rules:\n"
    "  - {id: all, per: const, limit: 100/s}\n"
    "  - {id: per-key, per: header:x-api-key, limit: 5/m}\n"
    "deny: [{path: /bad}]\n";

TEST_F(RealServerTest, AnOperatorsWordIsExplainedAsSuch) {
  const Service service(kRules);
  const Whom whom{.rule = "per-key", .identity = "abc"};
  EXPECT_THAT(Changed(service, Change::kBan, whom), StartsWith("banned: per-key "));
  const std::string banned = Explained(service);
  EXPECT_THAT(banned, StartsWith("would be denied (403): an operator banned it\n"));
  EXPECT_THAT(banned, HasSubstr("\nall  not asked\n"));
  EXPECT_THAT(banned, HasSubstr("\nper-key  banned by an operator\n"));
  EXPECT_EQ(Decide({.ask = At(service.api()), .rule = "per-key", .identity = "abc"}, console_),
            kRuntime);
  EXPECT_THAT(Said(), StartsWith("denied: banned by an operator"));
  (void)Changed(service, Change::kAllow, whom);
  const std::string allowed = Explained(service);
  EXPECT_THAT(allowed, StartsWith("would be allowed (200): rule all governs\n"));
  EXPECT_THAT(allowed, HasSubstr("\nper-key  allows, uncounted: by an operator\n"));
  (void)Changed(service, Change::kAllow, {.rule = "all"});
  EXPECT_THAT(Explained(service), StartsWith("would be allowed (200): an operator lets it pass\n"));
  EXPECT_THAT(Explained(service, "/bad"),
              StartsWith("would be denied (403): deny[0] (/bad) refuses it\n"));
}

TEST_F(RealServerTest, ARuleThatCountsAllTogetherNeedsNobodysName) {
  const Service service(kRules);
  EXPECT_EQ(Inspect({At(service.admin()), {.rule = "all"}}, console_), kOk) << Err();
  EXPECT_THAT(Said(), HasSubstr("key       const\n"));
  EXPECT_EQ(Explain({.ask = At(service.admin()), .whom = {.rule = "all"}}, console_), kOk);
  EXPECT_THAT(Said(), StartsWith("would be allowed (200): rule all governs\n"));
  EXPECT_EQ(Inspect({At(service.admin()), {.rule = "per-key"}}, console_), kUsage);
  EXPECT_THAT(Said(), HasSubstr("header:x-api-key"));
  EXPECT_EQ(Explain({.ask = At(service.admin()), .whom = {.rule = "per-key"}}, console_), kUsage);
  EXPECT_THAT(Said(), HasSubstr("; say who is counted: IDENTITY, --key KEY or --part"));
}

TEST_F(RealServerTest, TheOtherDoorIsNamed) {
  const Service service(kRules);
  EXPECT_EQ(Status(At(service.api()), console_), kUsage);
  EXPECT_THAT(Said(), HasSubstr("; is this the admin port? Name another with --admin\n"));
  EXPECT_EQ(Decide({.ask = At(service.admin()), .rule = "all", .identity = "a"}, console_), kUsage);
  EXPECT_THAT(Said(), HasSubstr("; is this the port of the API? Name another with --server\n"));
  EXPECT_EQ(Decide({.ask = At(service.api()), .rule = "none", .identity = "a"}, console_), kUsage);
  EXPECT_THAT(Said(), Not(HasSubstr("is this"))) << "only the rule is wrong";
}

TEST_F(RealServerTest, OfARuleThatIsGoneTheKeyIsLifted) {
  Service service(kRules);
  (void)Changed(service, Change::kBan, {.rule = "per-key", .identity = "abc"});
  ASSERT_TRUE(service.Reload("rules:\n  - {id: all, per: const, limit: 100/s}\n"));
  EXPECT_EQ(ChangeKey({.change = Change::kLift,
                       .ask = At(service.admin()),
                       .whom = {.rule = "per-key", .identity = "abc"}},
                      console_),
            kUsage);
  EXPECT_THAT(Said(), HasSubstr("name the key as `tidegate overrides` shows it: --key KEY\n"));
  EXPECT_EQ(ListOverrides(At(service.admin()), console_), kOk);
  const std::string listed = Said();
  const std::size_t begin = listed.find("header:");
  const std::string key = listed.substr(begin, listed.find(' ', begin) - begin);
  EXPECT_THAT(Changed(service, Change::kLift, {.rule = "per-key", .key = key}),
              StartsWith("lifted: "));
}

TEST_F(RealServerTest, AStoreThatDoesNotAnswerIsExplained) {
  const Service service(
      "store: {url: \"redis://127.0.0.1:1\"}\n"  // Nobody listens there.
      "identity: {hmac_key: 0123456789abcdef0123456789abcdef}\n"
      "rules:\n"
      "  - {id: mine, per: client_ip, limit: 100/s, on_failure: local}\n"
      "  - {id: soft, per: client_ip, limit: 5/m, on_failure: open}\n"
      "  - {id: hard, per: client_ip, limit: 5/m, on_failure: closed, match: {path: /pay}}\n");
  // The reason depends on how far the first attempt to connect has come.
  const std::string trouble = "  the store does not answer \\([a-z_]+\\), and the policy is ";
  const std::string passes = Explained(service);
  EXPECT_THAT(
      passes,
      StartsWith("would be allowed (200): rule mine governs (the store does not answer)\n"));
  EXPECT_THAT(passes,
              ContainsRegex("\nmine" + trouble +
                            "local: allows by this node's share, 100 of 100 left, 99 after it\n"));
  EXPECT_THAT(passes, ContainsRegex("\nsoft" + trouble + "open: allows\n"));
  const std::string refused = Explained(service, "/pay");
  EXPECT_THAT(refused,
              StartsWith("would be denied (503): rule hard governs (the store does not answer)\n"));
  EXPECT_THAT(refused, ContainsRegex("\nhard" + trouble + "closed: denies, try again in 1 s\n"));
  EXPECT_EQ(Decide({.ask = At(service.api()), .rule = "hard", .identity = "203.0.113.7"}, console_),
            kRuntime)
      << "a denial, not a server without an answer";
}

TEST_F(RealServerTest, TopCountsARequestOnceHoweverManyRulesDecideIt) {
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
  // Hot keys are reported every half a second.
  auto now = TakeSample(*client);
  const auto total = [&] { return Members(now->hot).Of("requests").Whole("total"); };
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
  EXPECT_EQ(view.hot[0].total, 30);
  EXPECT_EQ(view.hot[0].keys.at(0).count, 30) << "a key of every request has all of them";
}

TEST_F(RealServerTest, ChangeSaysThatItWasNotAppliedWhenRedisIsNotConnected) {
  const Service service(
      "store: {url: \"redis://127.0.0.1:1\", on_failure: open}\n"  // Nobody listens there.
      "identity: {hmac_key: 0123456789abcdef0123456789abcdef}\n"
      "rules:\n  - {id: mine, per: client_ip, limit: 100/s}\n");
  for (const Change change : {Change::kBan, Change::kReset}) {
    EXPECT_EQ(ChangeKey({.change = change,
                         .ask = At(service.admin()),
                         .whom = {.rule = "mine", .identity = "203.0.113.7"}},
                        console_),
              kNoAnswer);
    const std::string said = Said();
    EXPECT_THAT(said, StartsWith("tidegate " + std::string(Name(change)) + ": not applied: "));
    EXPECT_THAT(said, HasSubstr("; try again\n"));
  }
}

}  // namespace
}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#include "frontends/auth_failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidegate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Reason = AuthFailure::Reason;

constexpr AuthFailures::Clock::time_point kStart{std::chrono::hours{1}};

/// Returns what `act` writes to standard error.
template <class Do>
std::string StderrOf(Do&& act) {
  testing::internal::CaptureStderr();
  act();
  return testing::internal::GetCapturedStderr();
}

class AuthFailuresTest : public testing::Test {
 protected:
  AuthFailuresTest() {
    peer_.bytes[15] = 1;
    failures_.SetAudit([this](const std::string& listener, const AuthFailure& failure) {
      audited_.push_back(listener + " " + std::string(AuthFailure::Name(failure.reason)));
    });
  }
  std::string LogOf(std::chrono::milliseconds at, Reason reason,
                    std::string_view request = "/v1/ban") {
    return StderrOf([&] {
      (void)failures_.Record({.peer = peer_, .reason = reason, .request = request}, kStart + at);
    });
  }

  FailureThrottle throttle_{7};
  AuthFailures failures_{"admin", throttle_};
  net::Peer peer_;
  std::vector<std::string> audited_;
};

TEST_F(AuthFailuresTest, CountsEveryFailureAndLogsOncePerSecond) {
  const std::string first = LogOf(0ms, Reason::kMissing);
  EXPECT_THAT(first, HasSubstr("authentication failed: no credentials"));
  EXPECT_THAT(first, HasSubstr("listener=admin"));
  EXPECT_THAT(first, HasSubstr("peer=::1"));
  EXPECT_THAT(first, HasSubstr("request=/v1/ban"));
  EXPECT_EQ(LogOf(1ms, Reason::kWrong), "");
  EXPECT_EQ(LogOf(999ms, Reason::kRights), "");
  EXPECT_THAT(LogOf(1000ms, Reason::kRights), HasSubstr("suppressed=2"));
  EXPECT_EQ(LogOf(1999ms, Reason::kRights), "");
  EXPECT_EQ(failures_.count(Reason::kMissing), 1u);
  EXPECT_EQ(failures_.count(Reason::kWrong), 1u);
  EXPECT_EQ(failures_.count(Reason::kRights), 3u);
}

TEST_F(AuthFailuresTest, AuditsEveryReason) {
  for (std::size_t i = 0; i < AuthFailure::kReasons; ++i) {
    (void)LogOf(0ms, static_cast<Reason>(i));
  }
  EXPECT_THAT(audited_, testing::ElementsAre("admin missing", "admin wrong", "admin rights",
                                             "admin certificate", "admin untrusted_proxy",
                                             "admin proxy_header"));
}

TEST_F(AuthFailuresTest, EscapesLineBreaksInTheLog) {
  const std::string log = LogOf(0ms, Reason::kMissing, "/v1/ban\r\nforged: line");
  EXPECT_THAT(log, Not(HasSubstr("\nforged")));
}

TEST_F(AuthFailuresTest, ThrottlesOnlyWrongCredentialsOfClients) {
  struct Case {
    Reason reason;
    AuthFailure::Peers peers;
    bool throttled;
  };
  using Peers = AuthFailure::Peers;
  constexpr Case kCases[] = {
      {Reason::kMissing, Peers::kClient, false},
      {Reason::kWrong, Peers::kClient, true},
      {Reason::kWrong, Peers::kProxy, false},
      {Reason::kRights, Peers::kClient, false},
      {Reason::kCertificate, Peers::kClient, true},
      {Reason::kCertificate, Peers::kProxy, false},
      {Reason::kUntrustedProxy, Peers::kClient, false},
      {Reason::kProxyHeader, Peers::kProxy, false},
  };
  for (const Case& row : kCases) {
    FailureThrottle throttle(7);
    AuthFailures failures("resp", throttle);
    (void)StderrOf([&] {
      const AuthFailure failure{.peer = peer_, .reason = row.reason, .peers = row.peers};
      for (int i = 0; i < FailureThrottle::kBurst; ++i) {
        EXPECT_EQ(failures.Record(failure, kStart), std::nullopt);
      }
      const auto wait = failures.Record(failure, kStart + 1ms);
      EXPECT_EQ(wait.has_value(), row.throttled) << AuthFailure::Name(row.reason);
      EXPECT_EQ(wait.value_or(1s), 1s) << "the wait was not rounded up";
      EXPECT_EQ(failures.throttled(), row.throttled ? 1u : 0u);
    });
  }
}

}  // namespace
}  // namespace tidegate

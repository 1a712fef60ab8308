// SPDX-License-Identifier: Apache-2.0
// Redis over TLS: the log names what is wrong, the failure policy applies, and requests succeed as
// soon as the server is configured correctly.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "redis/fault_case.hpp"
#include "redis/redis_cluster.hpp"
#include "redis/redis_sentinels.hpp"
#include "redis/tls_files.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using Wire = RedisServer::Wire;
using Clients = TlsFiles::Clients;

class TlsTest : public FaultCase {
 protected:
  void Serve(Wire wire, const std::vector<std::string>& arguments) {
    redis_ = std::make_unique<RedisServer>(
        RedisServer::Options{.arguments = arguments, .port = test::FreePort(), .wire = wire});
  }
  void Serve(const TlsFiles::Pair& own, Clients clients = Clients::kAnybody) {
    Serve(Wire::kTls, files_.Arguments(own, clients));
  }
  void Begin(const std::string& url, const std::string& tls) {
    Start(url, Rules(), 1, kPatient, tls);
    FaultCase::StartLoad("closed");
  }
  void Begin(const std::string& tls) { Begin(redis_->url(), tls); }

  void ExpectNoFailures() {
    WaitUntilStoreAnswers(SteadyMicros());
    const std::int64_t since = SteadyMicros();
    ASSERT_TRUE(load_->Progress(900));
    const Records records = Finish();
    ExpectBuckets(records);
    Records later;
    for (const Record& record : records) {
      if (record.sent_us >= since) later.push_back(record);
    }
    ExpectUnnoticed(later);
  }
  /// Checks that no request is decided by the store, that errors of kind `tls` are counted (unless
  /// `counted` is false: a node cannot always tell that TLS is the cause), and that the log of
  /// every node names one of `causes`.
  void ExpectAlarm(const std::vector<std::string>& causes, bool counted = true) {
    EXPECT_EQ(load_->answered(DecidedBy::kStore), 0);
    for (std::size_t node = 0; node < fleet_->size(); ++node) {
      EXPECT_TRUE(!counted || test::WaitUntil(
                                  [&] {
                                    return (*fleet_)[node].Metric("tidegate_redis_errors_total",
                                                                  "kind=\"tls\"") > 0;
                                  },
                                  3s))
          << (*fleet_)[node].Output();
      EXPECT_TRUE(test::WaitUntil(
          [&] {
            const std::string log = (*fleet_)[node].Output();
            return std::any_of(causes.begin(), causes.end(), [&](const std::string& cause) {
              return log.find(cause) != std::string::npos;
            });
          },
          3s))
          << "the log does not contain `" << causes[0] << "`\n"
          << (*fleet_)[node].Output();
    }
  }
  /// Restarts Redis on the same port with these settings, and checks that all requests succeed
  /// within a second.
  void ExpectRecovery(Wire wire, const std::vector<std::string>& arguments) {
    redis_->Kill();
    redis_->Become(wire, arguments);
    redis_->Start();
    ExpectNoFailures();
  }
  void ExpectRecovery(const TlsFiles::Pair& own) {
    ExpectRecovery(Wire::kTls, files_.Arguments(own));
  }

  TlsFiles files_;
  TlsFiles::Pair good_ = files_.Issue();
  std::unique_ptr<RedisServer> redis_;
};

TEST_F(TlsTest, AcceptsCertificateOfTrustedAuthority) {
  Serve(good_);
  Begin(files_.StoreTls());
  ExpectNoFailures();
  EXPECT_EQ(Errors("tls"), 0);
}

TEST_F(TlsTest, RejectsCertificateOfUnknownAuthority) {
  Serve(files_.IssueByOther());
  Begin(files_.StoreTls());
  ExpectAlarm({"issuer", "self-signed", "unknown authority"});
  ExpectRecovery(good_);
}

TEST_F(TlsTest, RejectsExpiredCertificate) {
  Serve(files_.Issue("IP:127.0.0.1", TlsFiles::Validity::kOver));
  Begin(files_.StoreTls());
  ExpectAlarm({"expired"});
  ExpectRecovery(good_);
}

TEST_F(TlsTest, RejectsCertificateForAnotherName) {
  Serve(files_.Issue("DNS:redis.example,IP:192.0.2.1"));
  Begin(files_.StoreTls());
  ExpectAlarm({"mismatch", "another name", "127.0.0.1 is not"});
  ExpectRecovery(good_);
}

TEST_F(TlsTest, VerifiesConfiguredServerName) {
  Serve(files_.Issue("DNS:redis.example"));
  Begin(files_.StoreTls("server_name: redis.example"));
  ExpectNoFailures();
}

TEST_F(TlsTest, AcceptsAnyCertificateWithoutVerification) {
  Serve(files_.IssueByOther());
  Begin("tls: { verify: false }");
  ExpectNoFailures();
}

TEST_F(TlsTest, LogsWhenServerRequiresAClientCertificate) {
  Serve(good_, Clients::kWithCertificate);
  Begin(files_.StoreTls());
  ExpectAlarm({"certificate required", "alert"});
  ExpectRecovery(good_);
}

TEST_F(TlsTest, PresentsClientCertificate) {
  Serve(good_, Clients::kWithCertificate);
  Begin(files_.StoreTls(TlsFiles::Own(files_.Issue("DNS:tidegate"))));
  ExpectNoFailures();
}

TEST_F(TlsTest, LogsWhenServerDoesNotSpeakTls) {
  Serve(Wire::kPlain, {});
  Begin("rediss://" + redis_->address(), files_.StoreTls());
  ExpectAlarm({"this port does not support TLS"});
  ExpectRecovery(good_);
}

TEST_F(TlsTest, LogsWhenServerSpeaksOnlyTls) {
  Serve(good_);
  Begin("redis://" + redis_->address(), "");
  ExpectAlarm({"if this port requires TLS, write `rediss`"}, false);
  ExpectRecovery(Wire::kPlain, {});
}

TEST_F(TlsTest, ConnectsToClusterOverTls) {
  RedisCluster cluster(
      {.node_timeout_ms = 15'000, .arguments = files_.Arguments(good_), .wire = Wire::kTls});
  Start(cluster.url(), Rules(), 1, kPatient, files_.StoreTls());
  // 60 keys, so that each master has some.
  FaultCase::StartLoad(DecideInTurn("closed", 60));
  WaitUntilStoreAnswers(SteadyMicros());
  // The nodes follow a moved slot to its new master, over TLS too.
  std::string key;
  ASSERT_TRUE(test::WaitUntil([&] {
    const std::vector<std::string> keys = cluster.Keys(0, "tg:tb:closed:*");
    if (!keys.empty()) key = keys[0];
    return !keys.empty();
  }));
  cluster.MoveSlot(cluster.SlotOf(key), 0, 1);
  EXPECT_TRUE(test::WaitUntil([&] { return Errors("moved") > 0; }));
  ExpectNoFailures();
  EXPECT_EQ(Errors("tls"), 0);
}

TEST_F(TlsTest, FollowsSentinelFailoverOverTls) {
  RedisSentinels sentinels(
      {.arguments = files_.Arguments(good_), .lines = files_.Lines(good_), .wire = Wire::kTls});
  Begin(sentinels.url(), files_.StoreTls());
  WaitUntilStoreAnswers(SteadyMicros());
  const std::size_t before = sentinels.Master();
  const std::int64_t killed = SteadyMicros();
  sentinels[before].Kill();
  ASSERT_TRUE(test::WaitUntil([&] { return sentinels.Switched(before); }, 20s));
  const Loss loss{killed, SteadyMicros()};
  WaitUntilStoreAnswers(loss.to_us);
  ExpectBuckets(Finish(), {loss});
}

}  // namespace
}  // namespace tidegate::redis_test

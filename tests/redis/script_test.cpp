// SPDX-License-Identifier: Apache-2.0
// Tests each case of the scripts on a real Redis: stored formats, TTLs, healing, errors and
// published messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "redis/batch.hpp"
#include "redis/redis_server.hpp"
#include "redis/stored_text.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis_test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Numbers = std::vector<std::int64_t>;

Quota Make(Algorithm algorithm, std::int64_t limit, Micros period, std::int64_t burst = 0) {
  return Quota::Make({algorithm, limit, period, burst}).value();
}

constexpr Micros kSecond{1'000'000};

/// Matches the error for a forbidden command inside a script, in the words of Redis 7.0 and of
/// later versions.
auto Forbidden() {
  return ::testing::AnyOf(HasSubstr("NOPERM"), HasSubstr("The user executing the script can't"));
}

class ScriptTest : public ::testing::Test {
 protected:
  ScriptTest() : redis_(server_.Connect()) {
    sha_ = redis_.Text({"SCRIPT", "LOAD", std::string(redis::ApplyScript())});
  }

  /// Calls the batch script. Returns the text of its error, or "" and stores its reply in
  /// `numbers`.
  std::string Call(RedisClient& redis, std::vector<std::string> arguments, Numbers* numbers) {
    arguments.insert(arguments.begin(), {"EVALSHA", sha_});
    const Reply reply = redis.Command(arguments);
    if (!reply) return "no reply";
    std::string text(reply->str == nullptr ? "" : reply->str, reply->len);
    if (reply->type == REDIS_REPLY_ERROR) return text;
    const auto unpacked = Unpack(text);
    if (!unpacked) return "not msgpack";
    if (numbers != nullptr) *numbers = *unpacked;
    return "";
  }
  Numbers Apply(const Batch& batch) {
    Numbers numbers;
    EXPECT_EQ(Call(redis_, batch.Arguments(), &numbers), "");
    return numbers;
  }
  /// Returns the last number of the reply: for one entry on a hash, how many calls were admitted.
  std::int64_t Last(const Batch& batch) {
    const Numbers numbers = Apply(batch);
    return numbers.empty() ? -1 : numbers.back();
  }
  std::string Error(const Batch& batch) { return Call(redis_, batch.Arguments(), nullptr); }
  std::string ErrorOf(const Numbers& numbers, const std::string& key = "k") {
    return Call(redis_, {"1", key, Pack(numbers), ""}, nullptr);
  }
  std::int64_t Calls(const std::string& command) {
    const std::string stats = redis_.Text({"INFO", "commandstats"});
    const auto at = stats.find("cmdstat_" + command + ":calls=");
    if (at == std::string::npos) return 0;
    return std::stoll(stats.substr(stats.find('=', at) + 1));
  }
  std::int64_t Pttl(const std::string& key) { return std::stoll(redis_.Text({"PTTL", key})); }

  static Batch One(const Quota& quota, Entry entry, const std::string& key = "k") {
    return {.keys = {key}, .quotas = {quota}, .entries = {std::move(entry)}};
  }
  static Entry Charge(std::int64_t cost = 1, const std::string& lease = "") {
    return {.items = {{.cost = cost, .lease = lease}}};
  }
  static Entry Do(Op op, std::int64_t cost = 1, const std::string& lease = "") {
    Entry entry = Charge(cost, lease);
    entry.op = op;
    return entry;
  }
  static Batch RefundOf(const Quota& quota, std::int64_t cost, const std::string& id) {
    Batch batch = One(quota, Do(kRefund, cost));
    batch.keys.push_back(id);
    batch.entries[0].id = 1;
    return batch;
  }

  RedisServer server_;
  RedisClient redis_;
  std::string sha_;
};

const Quota kBucket = Make(Algorithm::kTokenBucket, 100, kSecond, 200);

TEST_F(ScriptTest, StoresStateAsReadableHashesAndSets) {
  const Numbers first = Apply(One(kBucket, Charge(5)));
  ASSERT_THAT(first, SizeIs(8));
  EXPECT_EQ(first[4], 200);
  EXPECT_EQ(first[5], first[0]);
  EXPECT_EQ(first[7], 1);
  EXPECT_EQ(redis_.Text({"HGETALL", "k"}), "tokens 195 last_refill " + std::to_string(first[0]) +
                                               " expires " + std::to_string(first[0] + 5'000'000));
  const Quota log = Make(Algorithm::kSlidingLog, 10, 60 * kSecond);
  const Numbers a = Apply(One(log, Charge(2), "log"));
  const Numbers b = Apply(One(log, Charge(3), "log"));
  EXPECT_EQ(redis_.Text({"ZRANGE", "log", "0", "-1", "WITHSCORES"}),
            "2:2 " + std::to_string(a[0]) + " 3:5 " + std::to_string(b[0]));
  const Quota leases = Make(Algorithm::kConcurrency, 10, 60 * kSecond);
  const Numbers c = Apply(One(leases, Charge(1, "job-1"), "leases"));
  const Numbers d = Apply(One(leases, Charge(4, "job-2"), "leases"));
  EXPECT_EQ(redis_.Text({"ZRANGE", "leases", "0", "-1", "WITHSCORES"}),
            "# -3 #job-2 -3 job-1 " + std::to_string(c[0] + 60'000'000) + " job-2 " +
                std::to_string(d[0] + 60'000'000));
  // The reply: first how many were admitted; then for the charge: admitted, remaining, retry_after,
  // more_after, reset_after, never.
  EXPECT_EQ(d, (Numbers{d[0], 0, 0, 0, 1, 1, 5, 0, c[0] + 60'000'000 - d[0], 60'000'000, 0}));
}

TEST_F(ScriptTest, EveryKeyIsKeptUntilItHasRecovered) {
  for (int i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const std::string key(Name(algorithm));
    const Quota quota = Make(algorithm, 10, 60 * kSecond);
    Apply(One(quota, Charge(1, algorithm == Algorithm::kConcurrency ? "lease" : ""), key));
    const std::int64_t ms = quota.recovery().count() / 1000;
    EXPECT_THAT(Pttl(key), AllOf(Ge(2 * ms), Le(2 * ms + 1001))) << key;
  }
  // A debt takes longer to recover than an empty bucket: here 2,000 units below empty, at 100 per
  // second.
  Apply(One(kBucket, Do(kDebit, 1'000'000)));
  EXPECT_THAT(Pttl("k"), AllOf(Ge(2 * 22'000), Le(2 * 22'000 + 1001)));
}

TEST_F(ScriptTest, KeepsTtlThatIsLongEnough) {
  const Quota log = Make(Algorithm::kSlidingLog, 2000, 60 * kSecond);
  Apply(One(kBucket, Charge()));
  Apply(One(log, Charge(), "log"));
  const std::int64_t before = Calls("pexpire");
  for (int i = 0; i < 1000; ++i)
    Apply(One(i % 2 == 0 ? kBucket : log, Charge(), i % 2 == 0 ? "k" : "log"));
  EXPECT_EQ(Calls("pexpire"), before);
}

TEST_F(ScriptTest, DenialRenewsTtlThatIsTooShort) {
  Apply(One(kBucket, Charge(200)));
  EXPECT_THAT(Pttl("k"), Le(5000));
  const Quota slow = Make(Algorithm::kTokenBucket, 1, 3600 * kSecond, 200);
  EXPECT_EQ(Last(One(slow, Charge(200))), 0);
  EXPECT_THAT(Pttl("k"), Ge(2LL * 199 * 3'600'000));
  const Quota log = Make(Algorithm::kSlidingLog, 1, kSecond);
  const Quota slow_log = Make(Algorithm::kSlidingLog, 1, 3600 * kSecond);
  Apply(One(log, Charge(), "log"));
  EXPECT_THAT(Pttl("log"), Le(3000));
  Apply(One(slow_log, Charge(), "log"));
  EXPECT_THAT(Pttl("log"), Ge(7'200'000));
}

TEST_F(ScriptTest, DenialWritesNothing) {
  Apply(One(kBucket, Charge(200)));
  const std::string before = redis_.Text({"HGETALL", "k"});
  const std::int64_t writes = Calls("hset");
  EXPECT_EQ(Last(One(kBucket, Charge(150))), 0);
  EXPECT_EQ(Calls("hset"), writes);
  EXPECT_EQ(redis_.Text({"HGETALL", "k"}), before);
  EXPECT_EQ(Last(One(kBucket, Charge(201), "never")), 0);
  EXPECT_EQ(redis_.Text({"EXISTS", "never"}), "0");
}

TEST_F(ScriptTest, HealsAndCountsCorruptKeys) {
  redis_.Text({"SET", "k", "a string"});
  Numbers numbers = Apply(One(kBucket, Charge(5)));
  EXPECT_EQ(numbers[2], 1);
  EXPECT_EQ(numbers[4], 200);
  EXPECT_EQ(redis_.Text({"HGET", "k", "tokens"}), "195");
  EXPECT_THAT(Pttl("k"), Ge(3000));
  redis_.Text({"HSET", "k", "tokens", "many", "owed", "5"});
  numbers = Apply(One(kBucket, Do(kLook)));
  EXPECT_EQ(numbers[2], 1);
  // The state is fresh again, so nothing has to be stored.
  EXPECT_EQ(redis_.Text({"EXISTS", "k"}), "0");
  const Quota log = Make(Algorithm::kSlidingLog, 10, 60 * kSecond);
  redis_.Text({"ZADD", "log", "1", "one:1"});
  EXPECT_EQ(Apply(One(log, Charge(), "log"))[2], 1);
  EXPECT_THAT(redis_.Text({"ZRANGE", "log", "0", "-1"}), "1:1");
}

TEST_F(ScriptTest, RestartsTotalsOfALogBeforeTheyOverflow) {
  const Quota log = Make(Algorithm::kSlidingLog, 10, 3600 * kSecond);
  const std::int64_t now = Apply(One(log, Do(kLook), "log"))[0];
  redis_.Text({"ZADD", "log", std::to_string(now), "2:4503599627370494"});
  redis_.Text({"ZADD", "log", std::to_string(now + 1), "2:4503599627370496"});
  redis_.Text({"PEXPIRE", "log", "9000000"});
  EXPECT_EQ(Apply(One(log, Charge(3), "log"))[6], 3);
  EXPECT_EQ(redis_.Text({"ZRANGE", "log", "0", "-1"}), "2:2 2:4 3:7");
  EXPECT_THAT(Pttl("log"), Ge(7'200'000));
}

TEST_F(ScriptTest, InvalidBatchIsAnErrorAndChangesNothing) {
  const Numbers good = {2, 1, 0, 100, 1'000'000, 200, 2'000'000, 1, 10'000, 450'359'962'737,
                        0, 1, 1, 1,   1,         1,   1,         1, 0};
  ASSERT_EQ(ErrorOf(good), "");
  redis_.Text({"DEL", "k"});
  const auto with = [&](std::size_t at, std::int64_t value) {
    Numbers bad = good;
    bad[at] = value;
    return ErrorOf(bad);
  };
  EXPECT_EQ(with(0, 1), "TIDEGATE the batch has an unknown version");
  EXPECT_THAT(with(1, 2), HasSubstr("quota 2 has a number that is not within 1 and 2^53"));
  EXPECT_THAT(with(1, -1), HasSubstr("number of quotas"));
  EXPECT_EQ(with(2, 6), "TIDEGATE quota 1 has an unknown algorithm");
  for (std::size_t i = 3; i <= 9; ++i) {
    EXPECT_THAT(with(i, 0), HasSubstr("not within 1 and 2^53")) << i;
    EXPECT_THAT(with(i, (1LL << 53) + 2), HasSubstr("not within 1 and 2^53")) << i;
  }
  EXPECT_THAT(with(5, 1LL << 52), HasSubstr("cannot be counted exactly"));
  EXPECT_EQ(with(10, 2), "TIDEGATE quota 1 has an unknown origin");
  EXPECT_EQ(with(10, -1), "TIDEGATE quota 1 has an unknown origin");
  EXPECT_THAT(with(11, 2), StartsWith("TIDEGATE "));
  EXPECT_THAT(with(11, 0), HasSubstr("does not end"));
  EXPECT_THAT(with(12, 8), HasSubstr("unknown op"));
  EXPECT_THAT(with(12, 0), HasSubstr("unknown op"));
  EXPECT_THAT(with(12, 6), HasSubstr("only concurrency has leases"));
  EXPECT_THAT(with(13, 0), HasSubstr("count is not within"));
  EXPECT_THAT(with(13, 1LL << 31), HasSubstr("count is not within"));
  EXPECT_THAT(with(14, 0), HasSubstr("no charges"));
  EXPECT_THAT(with(15, 2), HasSubstr("names no key"));
  EXPECT_THAT(with(15, 0), HasSubstr("names no key"));
  EXPECT_THAT(with(16, 2), HasSubstr("names no quota"));
  EXPECT_THAT(with(17, 0), HasSubstr("cost is not within"));
  EXPECT_THAT(with(17, -1), HasSubstr("cost is not within"));
  EXPECT_THAT(with(17, 1LL << 31), HasSubstr("cost is not within"));
  EXPECT_THAT(with(18, 2), HasSubstr("unknown mode"));
  Numbers debit = good;
  debit[12] = 3;
  EXPECT_THAT(ErrorOf(debit), HasSubstr("a debit has a max_debt that is not within"));
  debit.push_back(-1);
  EXPECT_THAT(ErrorOf(debit), HasSubstr("a debit has a max_debt that is not within"));
  debit.back() = 450'359'962'738;
  EXPECT_THAT(ErrorOf(debit), HasSubstr("a debit has a max_debt that is not within"));
  Numbers longer = good;
  longer.push_back(1);
  EXPECT_THAT(ErrorOf(longer), HasSubstr("does not end"));
  Numbers shorter = good;
  shorter.pop_back();
  EXPECT_THAT(ErrorOf(shorter), StartsWith("TIDEGATE "));
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
}

TEST_F(ScriptTest, RejectsBatchThatIsNoArrayOfIntegers) {
  EXPECT_THAT(Call(redis_, {"1", "k", "\xc1", ""}, nullptr), HasSubstr("not one msgpack array"));
  EXPECT_THAT(Call(redis_, {"1", "k", std::string(1, '\x01'), ""}, nullptr),
              HasSubstr("not one msgpack array"));
  // The cost is NaN, infinite, or 1.5.
  for (const double cost : {std::nan(""), HUGE_VAL, 1.5}) {
    Numbers good = {2, 1, 0, 100, 1'000'000, 200, 2'000'000, 1, 10'000, 450'359'962'737,
                    0, 1, 1, 1,   1,         1,   1};
    std::string packed = PackHead(19);
    for (const std::int64_t n : good) PackOne(packed, n);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &cost, sizeof bits);
    packed.push_back('\xcb');
    AppendBigEndian(packed, bits, 8);
    PackOne(packed, 0);
    EXPECT_THAT(Call(redis_, {"1", "k", packed, ""}, nullptr), HasSubstr("cost is not within"));
  }
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
}

TEST_F(ScriptTest, InvalidEntryAfterALeaseAcquiresNoLease) {
  const Quota leases = Make(Algorithm::kConcurrency, 10, 60 * kSecond);
  Batch batch = One(leases, Charge(1, "a"));
  batch.entries.push_back(Charge(0, "b"));
  EXPECT_THAT(Error(batch), HasSubstr("cost is not within"));
  batch.entries[1] = Charge(1, "#b");
  EXPECT_THAT(Error(batch), HasSubstr("names no lease"));
  batch.entries[1] = {.items = {{.lease = "b"}, {.lease = "c"}}};
  EXPECT_THAT(Error(batch), HasSubstr("the same key"));
  batch.quotas.push_back(kBucket);
  batch.entries[1] = {.items = {{.quota = 1}}};
  EXPECT_THAT(Error(batch), HasSubstr("two algorithms"));
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
}

TEST_F(ScriptTest, ReturnsErrorOfForbiddenCommandAndWritesNothing) {
  redis_.Text({"ACL", "SETUSER", "reader", "on", "nopass", "~*", "&*", "+@all", "-hset"});
  redis_.Text(
      {"ACL", "SETUSER", "writer", "on", "nopass", "~*", "&*", "+@all", "-hmget", "-zrange"});
  Batch batch = One(kBucket, Charge());
  for (const char* user : {"reader", "writer"}) {
    RedisClient limited = server_.Connect();
    ASSERT_EQ(limited.Text({"AUTH", user, ""}), "OK");
    EXPECT_THAT(Call(limited, batch.Arguments(), nullptr), Forbidden()) << user;
    EXPECT_EQ(redis_.Text({"DBSIZE"}), "0") << user;
  }
  // If a later command is forbidden, an earlier entry of the batch must not take its lease either.
  RedisClient limited = server_.Connect();
  ASSERT_EQ(limited.Text({"AUTH", "writer", ""}), "OK");
  redis_.Text({"ACL", "SETUSER", "writer", "+zrange"});
  Batch both{.keys = {"leases", "k"},
             .quotas = {Make(Algorithm::kConcurrency, 10, kSecond), kBucket},
             .entries = {Charge(1, "a"), {.items = {{.key = 1, .quota = 1}}}}};
  EXPECT_THAT(Call(limited, both.Arguments(), nullptr), Forbidden());
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "0");
}

TEST_F(ScriptTest, CountsFailedWritesAfterTheFirst) {
  redis_.Text({"ACL", "SETUSER", "some", "on", "nopass", "~*", "&*", "+@all", "-zadd"});
  RedisClient limited = server_.Connect();
  ASSERT_EQ(limited.Text({"AUTH", "some", ""}), "OK");
  Batch batch = RefundOf(kBucket, 1, "rf");
  Apply(One(kBucket, Charge(50)));
  batch.keys.push_back("log");
  batch.quotas.push_back(Make(Algorithm::kSlidingLog, 10, kSecond));
  batch.entries.push_back({.items = {{.key = 2, .quota = 1}}});
  Numbers numbers;
  EXPECT_EQ(Call(limited, batch.Arguments(), &numbers), "");
  ASSERT_THAT(numbers, SizeIs(Ge(4U)));
  EXPECT_EQ(numbers[3], 1);
  EXPECT_EQ(redis_.Text({"EXISTS", "log"}), "0");
  EXPECT_EQ(redis_.Text({"EXISTS", "rf"}), "1");
}

TEST_F(ScriptTest, ReturnsDenialsWhileRedisIsOutOfMemory) {
  Apply(One(kBucket, Charge(200)));
  const Quota leases = Make(Algorithm::kConcurrency, 1, 60 * kSecond);
  Apply(One(leases, Charge(1, "a"), "leases"));
  const std::string before = redis_.Text({"HGETALL", "k"});
  redis_.Text({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(Last(One(kBucket, Charge(200))), 0);
  EXPECT_EQ(Last(One(kBucket, Do(kLook))), 0);
  EXPECT_EQ(Apply(One(leases, Charge(1, "b"), "leases"))[4], 0);
  EXPECT_THAT(Error(One(kBucket, Do(kDebit))), StartsWith("OOM"));
  EXPECT_THAT(Error(One(kBucket, Charge(), "new")), StartsWith("OOM"));
  EXPECT_THAT(Error(One(Make(Algorithm::kSlidingLog, 9, kSecond), Charge(), "log")),
              StartsWith("OOM"));
  EXPECT_THAT(Error(One(Make(Algorithm::kConcurrency, 9, kSecond), Charge(1, "c"), "other")),
              StartsWith("OOM"));
  // A denial on a missing key comes first in the batch; it writes nothing.
  Batch batch = One(kBucket, Charge(201), "absent");
  batch.keys.push_back("new");
  batch.entries.push_back({.items = {{.key = 1}}});
  EXPECT_THAT(Error(batch), StartsWith("OOM"));
  redis_.Text({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(redis_.Text({"HGETALL", "k"}), before);
  EXPECT_EQ(redis_.Text({"DBSIZE"}), "2");
}

TEST_F(ScriptTest, RefundIsAppliedOnceAndPublished) {
  RedisClient listener = server_.Connect();
  listener.Text({"SUBSCRIBE", "news"});
  Batch refund = RefundOf(kBucket, 50, "rf:1");
  refund.channel = "news";
  EXPECT_EQ(Last(refund), 0);  // Nothing was charged, so the refund does not use up its id.
  EXPECT_EQ(redis_.Text({"EXISTS", "rf:1"}), "0");
  Apply(One(kBucket, Charge(200)));
  EXPECT_EQ(Last(refund), 1);
  EXPECT_THAT(Pttl("rf:1"), AllOf(Ge(2000), Le(3000)));
  EXPECT_EQ(Last(refund), 0);
  EXPECT_THAT(std::stoll(redis_.Text({"HGET", "k", "tokens"})), AllOf(Ge(50), Le(60)));
  Batch reset = One(kBucket, Do(kReset));
  reset.channel = "news";
  EXPECT_EQ(Last(reset), 1);
  EXPECT_EQ(Last(reset), 0);
  EXPECT_EQ(redis_.Text({"EXISTS", "k"}), "0");
  EXPECT_EQ(redis_.Text({"PUBLISH", "news", "end"}), "1");
  std::string heard;
  for (int i = 0; i < 4; ++i) heard += listener.Text({"PING"}) + "; ";
  EXPECT_EQ(heard, "message news k; message news k; message news k; message news end; ");
}

TEST_F(ScriptTest, AppliesOnlyFirstOfTwoRefundsWithOneId) {
  Apply(One(kBucket, Charge(200)));
  Batch batch = RefundOf(kBucket, 50, "rf:1");
  batch.entries.push_back(batch.entries[0]);
  const Numbers numbers = Apply(batch);
  EXPECT_EQ(numbers[numbers.size() - 2], 1);
  EXPECT_EQ(numbers.back(), 0);
}

class HeartbeatTest : public ScriptTest {
 protected:
  std::string Beat(const std::string& node, const std::string& key, const std::string& secret,
                   const std::string& ttl = "10000000", const std::string& leaving = "0") {
    return redis_.Text({"EVAL", std::string(redis::HeartbeatScript()), "2", "nodes", "secret", node,
                        key, secret, ttl, leaving});
  }
};

TEST_F(HeartbeatTest, CountsLiveNodesAndKeyMismatches) {
  EXPECT_EQ(Beat("a", "k1", ""), "1 0 ");
  EXPECT_EQ(Beat("b", "k1", "candidate"), "2 0 candidate");
  EXPECT_EQ(Beat("a", "k1", "another"), "2 0 candidate");
  EXPECT_EQ(Beat("c", "k2", ""), "3 2 candidate");
  EXPECT_EQ(Beat("a", "k1", ""), "3 1 candidate");
  EXPECT_EQ(Beat("c", "k1", ""), "3 0 candidate");  // A node has only one member in the set.
  EXPECT_THAT(Pttl("nodes"), AllOf(Ge(99'000), Le(100'000)));
  EXPECT_EQ(Beat("c", "k1", "", "10000000", "1"), "2 0 candidate");
  EXPECT_EQ(redis_.Text({"ZRANGE", "nodes", "0", "-1"}), "b k1 a k1");
}

TEST_F(HeartbeatTest, DropsNodesWithOldOrFutureHeartbeats) {
  redis_.Text({"ZADD", "nodes", "1000", "old k1"});
  redis_.Text({"ZADD", "nodes", "8999999999999999", "ahead k1"});
  EXPECT_EQ(Beat("a", "k1", ""), "1 0 ");
  EXPECT_THAT(Beat("a", "k1", "", "0"), HasSubstr("TIDEGATE"));
}

}  // namespace
}  // namespace tidegate::redis_test

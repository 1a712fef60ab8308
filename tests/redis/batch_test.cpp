// SPDX-License-Identifier: Apache-2.0
// Unit tests of Batch: each batch is written as a command, run by a real redis-server, and its
// reply is read.
#include "store/redis/batch.hpp"

#include <gtest/gtest.h>

#include "redis/redis_server.hpp"
#include "store/redis/resp_reader.hpp"
#include "store/redis/scripts.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
using redis::Batch;
using Verdict = Batch::Summary::Verdict;

struct TestCall : Call {
  TestCall(std::vector<Charge> of, std::uint64_t request)
      : own(std::move(of)), answers(own.size()) {
    charges = own;
    decisions = answers;
    record.request = {request, request};
  }
  std::vector<Charge> own;
  std::vector<Decision> answers;
};

class BatchTest : public testing::Test {
 protected:
  /// Writes the batch as a command, runs it on Redis, and returns the reply.
  std::string Run() {
    std::string command;
    batch_.Write(command, Batch::Form::kText, redis::ApplyScript(), "");
    // RespReader parses the command into its words, because a command is an array of strings.
    redis::RespReader reader;
    reader.Feed(command);
    redis::Reply parts;
    EXPECT_EQ(reader.Next(parts), redis::RespReader::Progress::kReply);
    std::vector<std::string> words;
    for (const redis::Reply& part : parts.elements) words.emplace_back(part.text);
    keys_sent_ = words.size() > 2 ? words[2] : "";
    return redis_.Text(words);
  }
  Batch::Summary Read(std::string_view packed) {
    answered_ = 0;
    return batch_.Read(packed, [&](Call&) { ++answered_; });
  }
  static Charge Of(std::string_view identity, const Quota& quota) {
    return {"r", identity, &quota};
  }

  RedisServer redis_;
  const redis::KeyNames names_{"tg:"};
  const Fingerprinter fingerprinter_;
  Batch batch_{names_, fingerprinter_};
  const Quota bucket_ = Quota::Make({.limit = 2, .period = 1h}).value();
  const Quota log_ =
      Quota::Make({.algorithm = Algorithm::kSlidingLog, .limit = 2, .period = 1h}).value();
  std::string keys_sent_;
  int answered_ = 0;
};

TEST_F(BatchTest, DoesNotChargeCallThatWasRemovedBeforeSending) {
  TestCall a({Of("a", bucket_)}, 1);
  TestCall b({Of("b", bucket_)}, 2);
  TestCall b2({Of("b", bucket_)}, 2);
  TestCall c({Of("c", bucket_), {"log", "c", &log_}}, 3);
  for (TestCall* const each : {&a, &b, &b2, &c}) ASSERT_TRUE(batch_.Add(*each));
  EXPECT_EQ(batch_.entries(), 3u);
  batch_.Remove(a);
  batch_.Remove(b);
  const std::string packed = Run();
  EXPECT_EQ(keys_sent_, "3") << "the key of the removed call a is still sent";
  EXPECT_EQ(Read(packed).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(b2.answers[0].remaining, 1);
  EXPECT_EQ(c.answers[1].remaining, 1);
  EXPECT_EQ(redis_.Text({"EXISTS", "tg:tb:r:{a}"}), "0");
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{b}", "tokens"}), "1");
}

TEST_F(BatchTest, KeysWithDifferentSlotTagsAreNotMerged) {
  const auto tagged = [&](std::string_view tag) {
    return Charge{.rule = "r", .identity = "a", .quota = &bucket_, .slot_tag = tag};
  };
  TestCall none({tagged("")}, 1);
  TestCall own({tagged("a")}, 2);
  TestCall acme({tagged("acme")}, 3);
  TestCall other({tagged("other")}, 4);
  TestCall refund({tagged("acme")}, 0);
  refund.kind = Call::Kind::kRefund;
  refund.refund.id = "x";
  for (TestCall* const each : {&none, &own, &acme, &other, &refund}) ASSERT_TRUE(batch_.Add(*each));
  EXPECT_EQ(batch_.keys(), 4u) << "three keys and the id of the refund";
  EXPECT_EQ(Read(Run()).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 5);
  EXPECT_EQ(none.answers[0].remaining, 1);
  EXPECT_EQ(own.answers[0].remaining, 0) << "a slot tag equal to the identity names the same key";
  EXPECT_EQ(acme.answers[0].remaining, 1);
  EXPECT_EQ(other.answers[0].remaining, 1);
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{a}", "tokens"}), "0");
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{acme}:a", "tokens"}), "2") << "refunded";
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{other}:a", "tokens"}), "1");
  EXPECT_EQ(redis_.Text({"EXISTS", "tg:rf:tb:r:{acme}:{a}:x"}), "1");
}

TEST_F(BatchTest, ChargesCallThatWasRemovedAfterSending) {
  TestCall one({Of("a", bucket_)}, 1);
  TestCall two({Of("a", bucket_)}, 1);
  TestCall three({Of("a", bucket_)}, 1);
  for (TestCall* const each : {&one, &two, &three}) ASSERT_TRUE(batch_.Add(*each));
  const std::string packed = Run();
  batch_.Remove(one);
  EXPECT_EQ(Read(packed).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 2);
  EXPECT_TRUE(two.allowed);
  EXPECT_EQ(two.answers[0].remaining, 0) << "the removed call was charged one unit";
  EXPECT_FALSE(three.allowed);
}

TEST_F(BatchTest, DoesNotSendRemovedRefund) {
  TestCall charge({Of("a", bucket_)}, 1);
  TestCall refund({Of("a", bucket_)}, 0);
  refund.kind = Call::Kind::kRefund;
  refund.refund.id = "x";
  TestCall look({Of("b", bucket_)}, 0);
  look.kind = Call::Kind::kPeek;
  for (TestCall* const each : {&charge, &refund, &look}) ASSERT_TRUE(batch_.Add(*each));
  batch_.Remove(refund);
  EXPECT_EQ(Read(Run()).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(look.answers[0].remaining, 2);
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{a}", "tokens"}), "1");
}

TEST_F(BatchTest, SecondResetUnderAnotherQuotaChangesNothing) {
  const Quota larger = Quota::Make({.limit = 50, .period = 1h}).value();
  redis_.Text({"HSET", "tg:tb:r:{a}", "tokens", "1", "last_refill", "1", "expires", "1"});
  TestCall reset({Of("a", larger)}, 0);
  TestCall second_reset({Of("a", bucket_)}, 0);
  reset.kind = second_reset.kind = Call::Kind::kReset;
  TestCall charge({Of("a", larger)}, 1);
  for (TestCall* const each : {&reset, &second_reset, &charge}) ASSERT_TRUE(batch_.Add(*each));
  EXPECT_EQ(Read(Run()).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 3);
  EXPECT_EQ(charge.answers[0].remaining, 49);
  EXPECT_EQ(redis_.Text({"HGET", "tg:tb:r:{a}", "tokens"}), "49");
}

TEST_F(BatchTest, RejectsTruncatedOrInconsistentReply) {
  TestCall call({Of("a", bucket_)}, 1);
  ASSERT_TRUE(batch_.Add(call));
  const std::string packed = Run();
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_NE(Read(packed.substr(0, size)).verdict, Verdict::kGood);
    EXPECT_EQ(answered_, 0);
  }
  // Changes the last byte: the reply claims another number of admitted calls than the C++ code
  // computes.
  std::string lie = packed;
  lie.back() = '\0';
  EXPECT_EQ(Read(lie).verdict, Verdict::kBadResponse);
  EXPECT_EQ(answered_, 0);
  EXPECT_EQ(Read(packed).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 1);
}

TEST_F(BatchTest, FullBatchAcceptsCallsEqualToItsEntries) {
  std::vector<std::unique_ptr<TestCall>> all;
  std::vector<std::string> names(200);
  std::size_t added = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    names[i] = "client-" + std::to_string(i);
    all.push_back(std::make_unique<TestCall>(std::vector<Charge>{Of(names[i], bucket_)}, i + 1));
    if (batch_.Add(*all.back())) ++added;
  }
  EXPECT_EQ(added, Batch::kMostEntries);
  EXPECT_TRUE(batch_.full());
  TestCall again({Of(names[5], bucket_)}, 6);
  EXPECT_TRUE(batch_.Add(again));
  EXPECT_EQ(Read(Run()).verdict, Verdict::kGood);
  EXPECT_EQ(answered_, 129);
  EXPECT_EQ(again.answers[0].remaining, 0);
  batch_.Clear();
  EXPECT_TRUE(batch_.Add(again)) << "a cleared batch accepts calls again";
}

}  // namespace
}  // namespace tidegate::redis_test

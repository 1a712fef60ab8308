// SPDX-License-Identifier: Apache-2.0
#include "store/redis/key_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

namespace tidegate::redis {
namespace {

Quota Of(Algorithm algorithm) { return Quota::Make({.algorithm = algorithm, .limit = 1}).value(); }

std::string KeyOf(std::string_view rule, std::string_view identity,
                  Algorithm algorithm = Algorithm::kTokenBucket) {
  const Quota quota = Of(algorithm);
  std::string key;
  KeyNames("tg:").AppendKey(key, {rule, identity, &quota});
  return key;
}

TEST(KeyNames, TheIdentityIsTheHashTag) {
  EXPECT_EQ(KeyOf("per-key", "client_ip=203.0.113.7"), "tg:tb:per-key:{client_ip=203.0.113.7}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kSlidingLog), "tg:sl:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kSlidingWindow), "tg:sw:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kFixedWindow), "tg:fw:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kGcra), "tg:gc:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kConcurrency), "tg:cc:r:{a}");
}

TEST(KeyNames, NothingThatCouldShapeAKeyAppearsInOne) {
  std::set<std::string> keys;
  const std::string evil[] = {"a}b",
                              "{",
                              "}{",
                              "a\r\nb",
                              std::string("\0", 1),
                              " ",
                              "\x7f",
                              "\xc3\xa4",
                              "~abc",
                              std::string(201, 'x'),
                              "a{b}",
                              "tg:tb}",
                              std::string(1 << 20, 'x')};
  for (const std::string& identity : evil) {
    const std::string key = KeyOf("r", identity);
    EXPECT_THAT(key, testing::MatchesRegex("tg:tb:r:.~[0-9a-f]+.")) << identity.substr(0, 20);
    EXPECT_EQ(key.size(), 8 + 2 + 33u);
    EXPECT_TRUE(keys.insert(key).second) << "two of them share a key";
  }
  EXPECT_THAT(KeyOf("a:b", "x"), testing::MatchesRegex("tg:tb:~[0-9a-f]+:.x."))
      << "a rule cannot reach into the identity";
}

TEST(KeyNames, FindsTheSubjectInAKey) {
  const KeyNames names("tg:");
  const auto subject_of = [&](std::string_view key) -> std::optional<std::string> {
    std::string out;
    if (!names.AppendSubjectOf(out, key)) return std::nullopt;
    return out;
  };
  for (int i = 0; i < kAlgorithms; ++i) {
    for (const std::string& rule : {std::string("r"), std::string("a:b"), std::string(300, 'r')}) {
      for (const std::string& identity :
           {std::string("header:x=1"), std::string("a}b"), std::string(300, 'i')}) {
        std::string subject;
        KeyNames::AppendSubject(subject, rule, identity);
        EXPECT_EQ(subject_of(KeyOf(rule, identity, static_cast<Algorithm>(i))), subject);
      }
    }
  }
  EXPECT_EQ(subject_of("tg:tb:per-key:{client_ip=203.0.113.7}"), "per-key:client_ip=203.0.113.7");
  for (const char* const other : {"", "tg:", "tg:tb:", "tg:xx:r:{a}", "other:tb:r:{a}", "tg:tb:r",
                                  "tg:tb:r:{a", "tg:overrides:{fleet}", "tg:tb:r:{a}x"}) {
    EXPECT_EQ(subject_of(other), std::nullopt) << other;
  }
}

TEST(KeyNames, RefundsStandBesideTheirKey) {
  const Quota quota = Of(Algorithm::kGcra);
  std::string key;
  KeyNames("p:").AppendRefund(key, {"r", "a", &quota}, "id-1");
  EXPECT_EQ(key, "p:rf:gc:r:{a}:id-1");
  key.clear();
  KeyNames("p:").AppendRefund(key, {"r", "a", &quota}, "{b}");
  EXPECT_THAT(key, testing::MatchesRegex("p:rf:gc:r:.a.:~[0-9a-f]+"));
}

TEST(KeyNames, LeasesNeverLookLikeBookkeeping) {
  std::string lease;
  KeyNames::AppendLease(lease, "#x");
  EXPECT_EQ(lease.front(), '~');
  lease.clear();
  KeyNames::AppendLease(lease, "job-17");
  EXPECT_EQ(lease, "job-17");
}

}  // namespace
}  // namespace tidegate::redis

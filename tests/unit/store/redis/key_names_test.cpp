// SPDX-License-Identifier: Apache-2.0
#include "store/redis/key_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "slot_of_key.hpp"

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

std::string TaggedKeyOf(std::string_view tag, std::string_view rule, std::string_view identity) {
  const Quota quota = Of(Algorithm::kTokenBucket);
  std::string key;
  KeyNames("tg:").AppendKey(key,
                            {.rule = rule, .identity = identity, .quota = &quota, .slot_tag = tag});
  return key;
}

std::string RefundOf(std::string_view tag, std::string_view rule, std::string_view identity,
                     std::string_view id) {
  const Quota quota = Of(Algorithm::kTokenBucket);
  std::string key;
  KeyNames("tg:").AppendRefund(
      key, {.rule = rule, .identity = identity, .quota = &quota, .slot_tag = tag}, id);
  return key;
}

TEST(KeyNamesTest, UsesIdentityAsHashTag) {
  EXPECT_EQ(KeyOf("per-key", "client_ip=203.0.113.7"), "tg:tb:per-key:{client_ip=203.0.113.7}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kSlidingLog), "tg:sl:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kSlidingWindow), "tg:sw:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kFixedWindow), "tg:fw:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kGcra), "tg:gc:r:{a}");
  EXPECT_EQ(KeyOf("r", "a", Algorithm::kConcurrency), "tg:cc:r:{a}");
}

TEST(KeyNamesTest, HashesTextWithCharactersThatSeparateKeyParts) {
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
    EXPECT_TRUE(keys.insert(key).second) << "two charges share a key";
  }
  EXPECT_THAT(KeyOf("a:b", "x"), testing::MatchesRegex("tg:tb:~[0-9a-f]+:.x."))
      << "a rule name was read as a part of the identity";
}

TEST(KeyNamesTest, FindsRuleAndIdentityInKey) {
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
        EXPECT_EQ(subject_of(TaggedKeyOf("acme:1", rule, identity)), subject);
        EXPECT_EQ(subject_of(TaggedKeyOf("{x}", rule, identity)), subject);
      }
    }
  }
  EXPECT_EQ(subject_of("tg:tb:per-key:{client_ip=203.0.113.7}"), "per-key:client_ip=203.0.113.7");
  for (const char* const other : {"", "tg:", "tg:tb:", "tg:xx:r:{a}", "other:tb:r:{a}", "tg:tb:r",
                                  "tg:tb:r:{a", "tg:overrides:{fleet}", "tg:tb:r:{a}x"}) {
    EXPECT_EQ(subject_of(other), std::nullopt) << other;
  }
}

TEST(KeyNamesTest, KeyContainsSlotTagAndIdentity) {
  EXPECT_EQ(TaggedKeyOf("acme", "per-key", "client_ip=203.0.113.7"),
            "tg:tb:per-key:{acme}:client_ip=203.0.113.7");
  EXPECT_EQ(RefundOf("acme", "per-key", "client_ip=203.0.113.7", "r-17"),
            "tg:rf:tb:per-key:{acme}:{client_ip=203.0.113.7}:r-17");
}

TEST(KeyNamesTest, SlotTagEqualToIdentityDoesNotChangeKey) {
  for (const std::string& identity : {std::string("client_ip=203.0.113.7"), std::string("a}b")}) {
    EXPECT_EQ(TaggedKeyOf("", "r", identity), KeyOf("r", identity));
    EXPECT_EQ(TaggedKeyOf(identity, "r", identity), KeyOf("r", identity));
    EXPECT_EQ(RefundOf(identity, "r", identity, "id"), RefundOf("", "r", identity, "id"));
  }
  EXPECT_EQ(RefundOf("", "r", "a", "id"), "tg:rf:tb:r:{a}:id");
}

TEST(KeyNamesTest, SlotMatchesSlotOfGeneratedKeyName) {
  const Quota quota = Of(Algorithm::kTokenBucket);
  const std::string texts[] = {"", "a", "acme", "a}b", "{x}", "~h", std::string(300, 'x')};
  for (const std::string& tag : texts) {
    for (const std::string& identity : texts) {
      const Charge charge{.rule = "a:{b}", .identity = identity, .quota = &quota, .slot_tag = tag};
      EXPECT_EQ(KeyNames::SlotOf(charge), SlotOfKey(TaggedKeyOf(tag, "a:{b}", identity)));
      EXPECT_EQ(KeyNames::SlotOf(charge), SlotOfKey(RefundOf(tag, "a:{b}", identity, "{id}")));
    }
  }
  EXPECT_EQ(SlotOfKey(TaggedKeyOf("acme", "r", "a")), SlotOfKey(TaggedKeyOf("acme", "s", "b")));
}

/// For texts of the characters that have a meaning in names: no two charges share a key, and no two
/// refunds share the name of an id, with or without a slot tag.
TEST(KeyNamesTest, NamesDifferForDifferentCharges) {
  constexpr std::string_view kCharacters = "a:}{";
  std::vector<std::string> texts = {"",      "a:b",   "a:a",   "~",  "a}:a",
                                    "a}:{a", "{a}:a", ":{a}:", "}:{"};
  for (const char first : kCharacters) {
    texts.emplace_back(1, first);
    for (const char second : kCharacters) texts.push_back({first, second});
  }
  using Named =
      std::array<std::string, 4>;  // Rule, effective slot tag, identity, id of the refund.
  std::map<std::string, Named> names;
  const auto check = [&](const std::string& name, const Named& of) {
    const auto [place, added] = names.emplace(name, of);
    ASSERT_TRUE(added || place->second == of)
        << name << " is the name for " << testing::PrintToString(of) << " and "
        << testing::PrintToString(place->second);
  };
  const std::string few[] = {"a", "a:a", "}", ":{a", "~"};
  for (const std::string& rule : few) {
    for (const std::string& tag : texts) {
      for (const std::string& identity : texts) {
        if (identity.empty()) continue;
        const std::string& effective = tag.empty() ? identity : tag;
        ASSERT_NO_FATAL_FAILURE(
            check(TaggedKeyOf(tag, rule, identity), {rule, effective, identity, ""}));
        for (const std::string& id : few) {
          ASSERT_NO_FATAL_FAILURE(
              check(RefundOf(tag, rule, identity, id), {rule, effective, identity, id}));
        }
      }
    }
  }
  EXPECT_GT(names.size(), 10'000u);
}

TEST(KeyNamesTest, StoresRefundIdInSlotOfItsKey) {
  const Quota quota = Of(Algorithm::kGcra);
  std::string key;
  KeyNames("p:").AppendRefund(key, {"r", "a", &quota}, "id-1");
  EXPECT_EQ(key, "p:rf:gc:r:{a}:id-1");
  key.clear();
  KeyNames("p:").AppendRefund(key, {"r", "a", &quota}, "{b}");
  EXPECT_THAT(key, testing::MatchesRegex("p:rf:gc:r:.a.:~[0-9a-f]+"));
}

TEST(KeyNamesTest, LeaseNameNeverBeginsWithHash) {
  std::string lease;
  KeyNames::AppendLease(lease, "#x");
  EXPECT_EQ(lease.front(), '~');
  lease.clear();
  KeyNames::AppendLease(lease, "job-17");
  EXPECT_EQ(lease, "job-17");
}

}  // namespace
}  // namespace tidegate::redis

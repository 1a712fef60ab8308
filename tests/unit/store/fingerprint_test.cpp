// SPDX-License-Identifier: Apache-2.0
#include "store/fingerprint.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tidegate {
namespace {

std::pair<std::uint64_t, std::uint64_t> Pair(const Fingerprint& f) { return {f.low, f.high}; }

TEST(FingerprinterTest, FingerprintDiffersForEveryPartOfKey) {
  const Fingerprinter print;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  int made = 0;
  const auto add = [&](const Fingerprint& f) {
    seen.insert(Pair(f));
    ++made;
    EXPECT_NE(f.low, 0u);
  };
  for (int a = 0; a < kAlgorithms; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    add(print.Key(algorithm, "rule", "identity"));
    add(print.Key(algorithm, "identity", "rule"));
    add(print.Key(algorithm, "rulei", "dentity"));
    add(print.Key(algorithm, "same", "same"));
    add(print.Key(algorithm, "rule", std::string("identity\0", 9)));
    add(print.Overflow(Quota::Make({.algorithm = algorithm, .limit = 1}).value(), Mode::kEnforce,
                       "rule"));
  }
  const Fingerprint key = print.Key(Algorithm::kGcra, "rule", "identity");
  add(print.Id(key, "refund"));
  add(print.Id(key, "refund2"));
  add(print.Id(print.Key(Algorithm::kGcra, "rule", "other"), "refund"));
  const auto tagged = [&](std::string_view tag) {
    return print.WithSlotTag(key, {.rule = "rule", .identity = "identity", .slot_tag = tag});
  };
  add(tagged("refund"));
  add(tagged("acme"));
  add(print.Id(tagged("acme"), "refund"));
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(made));
  EXPECT_EQ(tagged(""), key);
  EXPECT_EQ(tagged("identity"), key) << "the identity is not the default slot tag";
}

TEST(FingerprinterTest, FingerprintDiffersBetweenInstances) {
  const Fingerprinter one;
  const Fingerprinter other;
  const auto key = [](const Fingerprinter& f) { return f.Key(Algorithm::kGcra, "r", "i"); };
  EXPECT_EQ(key(one), key(one));
  EXPECT_NE(key(one), key(other));
}

}  // namespace
}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace tidegate {

using namespace std::chrono_literals;

inline Quota MakeQuota(const QuotaSpec& spec) {
  auto quota = Quota::Make(spec);
  EXPECT_TRUE(quota.has_value()) << quota.error().message;
  return *quota;
}

/// A memory store with a clock that the test moves.
class MemoryStoreTest : public testing::Test {
 protected:
  explicit MemoryStoreTest(std::size_t max_keys = 10'000, std::size_t max_list_bytes = 1 << 20)
      : store_(NewMemoryStore(
            {.max_keys = max_keys, .max_list_bytes = max_list_bytes, .clock = &clock_})) {}

  Decision Decide(const Charge& charge) {
    auto decision = store_->Apply(charge);
    EXPECT_TRUE(decision.has_value()) << decision.error().message;
    return decision.value_or(Decision{});
  }
  /// Applies `count` equal requests with these charges. Returns how many of them were allowed.
  std::int64_t Apply(const std::vector<Charge>& charges, std::int64_t count = 1) {
    decisions_.assign(charges.size(), {});
    const auto admitted = store_->Apply(charges, count, decisions_);
    EXPECT_TRUE(admitted.has_value()) << admitted.error().message;
    return admitted.value_or(-1);
  }
  std::int64_t Remaining(const Charge& charge) { return store_->Peek(charge).value().remaining; }

  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::vector<Decision> decisions_;
};

}  // namespace tidegate

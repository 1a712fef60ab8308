// SPDX-License-Identifier: Apache-2.0
#include "redis/cluster_case.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "redis/slots.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

/// Returns the node that owns the slot when the cluster starts.
std::size_t FirstOwner(int slot) {
  return static_cast<std::size_t>(std::min(slot / (RedisCluster::kSlots / 3), 2));
}

std::vector<std::string> Addresses(std::uint32_t count) {
  std::vector<std::string> addresses;
  for (int i = 1; addresses.size() < count; ++i) {
    std::string address = "10.0." + std::to_string(i / 250) + '.' + std::to_string(i % 250 + 1);
    if (FirstOwner(SlotOfTag("client_ip=" + address)) == addresses.size() % 3) {
      addresses.push_back(std::move(address));
    }
  }
  return addresses;
}

template <typename Wanted>
Records Those(const Records& records, Wanted wanted) {
  Records found;
  std::copy_if(records.begin(), records.end(), std::back_inserter(found), wanted);
  return found;
}

}  // namespace

std::string ClusterCase::Rules() {
  std::string rules = "rules:\n";
  for (const std::string policy : {"closed", "open", "local"}) {
    rules += "  - { id: " + policy + ", per: client_ip, limit: 100/s, burst: 50, ";
    rules += "algorithm: token_bucket, on_failure: " + policy + " }\n";
  }
  rules += "  - { id: once, per: client_ip, limit: 1000000/24h, algorithm: fixed_window }\n";
  return rules;
}

const std::string& ClusterCase::AddressOf(std::uint32_t key) {
  static const std::vector<std::string> addresses = Addresses(kKeys);
  return addresses[key];
}

int ClusterCase::SlotOf(std::uint32_t key) { return SlotOfTag("client_ip=" + AddressOf(key)); }

std::vector<std::uint32_t> ClusterCase::KeysOf(std::size_t home) {
  std::vector<std::uint32_t> keys;
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    if (HomeOf(key) == home) keys.push_back(key);
  }
  return keys;
}

std::vector<int> ClusterCase::AllSlots() {
  std::vector<int> slots;
  for (std::uint32_t key = 0; key < kKeys; ++key) slots.push_back(SlotOf(key));
  return slots;
}

Load::Next ClusterCase::InTurn(std::string rule) {
  return [rule = std::move(rule), turn = 0U](std::uint32_t, const Record*,
                                             LoadRequest& load_request) mutable {
    load_request.key = turn++ % kKeys;
    load_request.body.assign("{\"rule\":\"").append(rule).append("\",\"identity\":\"");
    load_request.body.append(AddressOf(load_request.key)).append("\"}");
  };
}

void ClusterCase::Begin(std::string_view rule, std::string_view deadline,
                        const RedisCluster::Options& options) {
  cluster_.emplace(options);
  Start(cluster_->url(), Rules(), 1, deadline);
  FaultCase::StartLoad(InTurn(std::string(rule)));
  for (std::size_t home = 0; home < 3; ++home) WaitUntilStoreAnswers(KeysOf(home), SteadyMicros());
  begun_us_ = SteadyMicros();
}

void ClusterCase::WaitUntilStoreAnswers(const std::vector<std::uint32_t>& keys,
                                        std::int64_t since_us) {
  ASSERT_TRUE(test::WaitUntil([&] {
    return std::all_of(keys.begin(), keys.end(),
                       [&](std::uint32_t key) { return load_->last_store_us(key) >= since_us; });
  })) << test::kTiming
      << "the store does not answer for all keys\n"
      << fleet_->Output();
}

void ClusterCase::ExpectBack(const Records& records, const std::vector<std::uint32_t>& keys,
                             std::int64_t since_us) const {
  std::map<std::pair<int, std::uint32_t>, std::int64_t> first;
  for (const Record& record : records) {
    if (record.decided_by != DecidedBy::kStore || record.sent_us < since_us) continue;
    const auto [found, is_new] =
        first.emplace(std::pair(record.node, record.key), record.received_us());
    if (!is_new) found->second = std::min(found->second, record.received_us());
  }
  std::int64_t longest = 0;
  for (const std::uint32_t key : keys) {
    for (int node = 0; node < static_cast<int>(fleet_->size()); ++node) {
      const auto found = first.find({node, key});
      ASSERT_NE(found, first.end()) << "node " << node << ", key " << key;
      longest = std::max(longest,
                         found->second - since_us - canary_->LateMicros(since_us, found->second));
    }
  }
  std::cout << "the store answered for its slots again within " << longest / 1000 << " ms\n";
  EXPECT_LE(longest, kBackUs);
}

Records ClusterCase::OfKeys(const Records& records, std::size_t home) {
  return Those(records, [&](const Record& record) { return HomeOf(record.key) == home; });
}

Records ClusterCase::OfOthers(const Records& records, std::size_t home) {
  return Those(records, [&](const Record& record) { return HomeOf(record.key) != home; });
}

Records ClusterCase::Between(const Records& records, std::int64_t from_us, std::int64_t to_us) {
  return Those(records, [&](const Record& record) {
    return record.sent_us >= from_us && record.received_us() <= to_us;
  });
}

}  // namespace tidegate::redis_test

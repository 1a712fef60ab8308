// SPDX-License-Identifier: Apache-2.0
#include "redis/fault_case.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>

#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

constexpr long kGrownBytes = 8L << 20;
/// Tolerance: during a reconnect a node may have an old and a new connection to Redis open.
constexpr int kGrownDescriptors = 6;

/// Returns for each node the time at which the client received the first decision of the store on a
/// request that was sent at `since_us` or later.
std::map<int, std::int64_t> FirstOfStore(const Records& records, std::int64_t since_us) {
  std::map<int, std::int64_t> first;
  for (const Record& record : records) {
    if (record.decided_by != DecidedBy::kStore || record.sent_us < since_us) continue;
    const auto [found, is_new] = first.emplace(record.node, record.received_us());
    if (!is_new) found->second = std::min(found->second, record.received_us());
  }
  return first;
}

}  // namespace

int Setting(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr
             ? otherwise
             : std::max(1, std::atoi(value));  // NOLINT: set by the caller of the test.
}

std::string FaultCase::Rules() {
  std::string rules = "rules:\n";
  for (const std::string policy : {"closed", "open", "local"}) {
    rules += "  - { id: " + policy + ", per: header:x-user, limit: 100/s, burst: 50, ";
    rules += "algorithm: token_bucket, on_failure: " + policy + " }\n";
  }
  rules += "  - { id: once, per: header:x-user, limit: 1000/24h, algorithm: fixed_window }\n";
  return rules;
}

void FaultCase::Start(const std::string& url, const std::string& rules, int threads,
                      std::string_view deadline, std::string_view more) {
  std::string store = "store: { url: \"" + url +
                      "\", prefix: \"tg:\", deadline: " + std::string(deadline) +
                      ", on_failure: closed";
  if (!more.empty()) store.append(", ").append(more);
  store += " }\n";
  fleet_ = std::make_unique<Fleet>(Fleet::Options{.yaml = store + rules, .threads = threads});
}

void FaultCase::StartLoad(const Load::Next& next, double rate, int connections) {
  canary_.emplace();
  load_ = std::make_unique<Load>(
      Load::Options{.ports = fleet_->Apis(), .connections = connections, .rate = rate}, next);
  ASSERT_TRUE(load_->Progress(300)) << fleet_->Output();
}

void FaultCase::WaitUntilStoreAnswers(std::int64_t since_us) {
  returns_.push_back(since_us);
  ASSERT_TRUE(test::WaitUntil([&] { return load_->last_store_us() >= since_us; }))
      << test::kTiming << "the store does not answer every node\n"
      << fleet_->Output();
}

void FaultCase::RecordResourceBaseline() {
  resident_ = fleet_->ResidentBytes();
  descriptors_ = fleet_->Descriptors();
}

Records FaultCase::Finish() {
  EXPECT_TRUE(fleet_->AllAlive()) << fleet_->Output();
  if (resident_ != 0) {
    EXPECT_LE(fleet_->ResidentBytes(), resident_ + kGrownBytes);
    EXPECT_TRUE(test::WaitUntil([&] {
      return fleet_->Descriptors() <= descriptors_ + kGrownDescriptors;
    })) << fleet_->Descriptors()
        << " descriptors, " << descriptors_ << " before";
  }
  Records records = load_->Stop();
  canary_->Stop();
  EXPECT_EQ(load_->lost(), 0);
  EXPECT_EQ(load_->unexpected(), 0);
  for (const Record& record : records) {
    const bool closed = record.decided_by == DecidedBy::kClosed;
    const bool known = record.status == 200 || record.status == 429 || record.status == 503;
    EXPECT_TRUE(known && record.decided_by != DecidedBy::kNone && closed == (record.status == 503))
        << "status " << record.status << ", decided_by " << static_cast<int>(record.decided_by);
    if (HasFailure()) break;
  }
  std::int64_t longest = 0;
  for (const std::int64_t since : returns_) {
    const auto first = FirstOfStore(records, since);
    EXPECT_EQ(first.size(), fleet_->size());
    for (const auto& [node, at] : first) {
      longest = std::max(longest, at - since - canary_->LateMicros(since, at));
    }
  }
  EXPECT_LE(longest, kBackUs) << test::kTiming
                              << "microseconds until the store answered every node again";
  if (!returns_.empty())
    std::cout << "the store answered again within " << longest / 1000 << " ms; ";
  std::cout << LatenciesOf(records) << '\n';
  return records;
}

void FaultCase::ExpectInTime(const Records& records) const {
  const Records undisturbed = canary_->Undisturbed(records);
  const Latencies latencies = LatenciesOf(undisturbed);
  std::cout << "latencies of requests that the machine did not disturb: " << latencies << '\n';
  // If the machine disturbed more than a tenth of the requests, the latencies of the others say
  // more about the machine than about Tidegate.
  const bool judged = std::getenv("TIDEGATE_STRICT") != nullptr ||
                      undisturbed.size() >= records.size() - records.size() / 10;
  if (!judged) {
    GTEST_SKIP() << "latencies not judged: the machine was too busy for "
                 << records.size() - undisturbed.size() << " of " << records.size() << " answers";
  }
  EXPECT_LE(latencies.p999_ms, kInTimeMs) << test::kTiming;
}

Records FaultCase::OfStore(const Records& records) {
  Records of_store;
  for (const Record& record : records) {
    if (record.decided_by == DecidedBy::kStore || record.decided_by == DecidedBy::kCache)
      of_store.push_back(record);
  }
  return of_store;
}

Records FaultCase::Of(DecidedBy decided_by, const Records& records) {
  Records found;
  std::copy_if(records.begin(), records.end(), std::back_inserter(found),
               [&](const Record& record) { return record.decided_by == decided_by; });
  return found;
}

void FaultCase::ExpectUnnoticed(const Records& records) const {
  const Records judged = canary_ ? canary_->Undisturbed(records) : records;
  const std::size_t others = judged.size() - OfStore(judged).size();
  EXPECT_EQ(others, 0U) << test::kTiming << "decisions not made by the store or its cache, of "
                        << judged.size();
  if (others == 0) return;
  int reported = 0;
  for (const Record& record : judged) {
    if (record.decided_by == DecidedBy::kStore || record.decided_by == DecidedBy::kCache ||
        ++reported > 10)
      continue;
    std::cout << "decided_by " << static_cast<int>(record.decided_by) << ", node "
              << int{record.node} << ", key " << record.key << ", sent " << record.sent_us
              << " us, took " << record.took_us << " us\n";
  }
  std::cout << fleet_->Failures() << fleet_->Output();
}

void FaultCase::ExpectBuckets(const Records& records, std::vector<Loss> losses) {
  EXPECT_TRUE(EachKey(OfStore(records), [&](std::span<const Record> key) {
    return BucketHolds(key, kBucket, losses);
  }));
}

double FaultCase::Failures(std::string_view reason) const {
  return fleet_->Metric("tidegate_failures_total", "reason=\"" + std::string(reason) + "\"");
}

double FaultCase::Errors(std::string_view kind) const {
  return fleet_->Metric("tidegate_redis_errors_total", "kind=\"" + std::string(kind) + "\"");
}

}  // namespace tidegate::redis_test

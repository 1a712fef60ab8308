// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/canary.hpp"
#include "redis/fleet.hpp"
#include "redis/invariants.hpp"
#include "redis/load.hpp"
#include "redis/redis_server.hpp"

namespace tidegate::redis_test {

/// Returns a whole number from the environment variable `name`, or `otherwise` if it is unset. Used
/// for runs that are longer than the default.
[[nodiscard]] int Setting(const char* name, int otherwise);

/// Three tidegate processes under load on one Redis, with checks of what must hold during every
/// fault: each request gets one response in time; no process dies or grows; limits hold; the store
/// answers again within one second after Redis returns.
class FaultCase : public testing::Test {
 protected:
  /// The limit that each key of the bucket rules below has.
  static constexpr Promise kBucket{100, 1'000'000, 50};
  /// Latency bound in milliseconds: the deadline of 20 ms, plus 5 ms for a busy machine.
  static constexpr double kInTimeMs = 25;
  /// Microseconds within which the store must answer again after Redis returns.
  static constexpr std::int64_t kBackUs = 1'000'000;
  static constexpr std::uint32_t kKeys = 10;
  /// A deadline for tests in which no request may fail: long enough for a busy machine.
  static constexpr const char* kPatient = "500ms";

  /// Returns the rules `closed`, `open` and `local`, each a token bucket of 100/s with burst 50,
  /// and `once`, a daily fixed window that counts every charge.
  [[nodiscard]] static std::string Rules();
  /// Starts the fleet. `more` holds additional members of `store`, such as `tls: {...}`.
  void Start(const std::string& url, const std::string& rules = Rules(), int threads = 1,
             std::string_view deadline = "20ms", std::string_view more = {});
  /// Starts the load: by default 3,000 requests per second, three times what the limits admit.
  void StartLoad(const Load::Next& next, double rate = 3000, int connections = 16);
  void StartLoad(std::string_view rule) { StartLoad(DecideInTurn(std::string(rule), kKeys)); }

  /// Waits until the store has decided on a request to every node that was sent at `since_us` or
  /// later. Finish() checks how long this took.
  void WaitUntilStoreAnswers(std::int64_t since_us);
  /// Records the memory and the descriptors of the fleet; Finish() checks that they have not grown
  /// since.
  void RecordResourceBaseline();
  /// Stops the load and checks everything that must hold during any fault. Returns the records of
  /// all sources.
  Records Finish();
  void ExpectInTime(const Records& records) const;

  /// Returns the records that the store or its cache decided.
  [[nodiscard]] static Records OfStore(const Records& records);
  [[nodiscard]] static Records Of(DecidedBy decided_by, const Records& records);
  /// Checks that the store or its cache made every decision, so callers did not notice the fault.
  /// Ignores requests that were in flight while this machine did not run the test.
  void ExpectUnnoticed(const Records& records) const;
  /// Checks that the bucket rules hold for what the store admitted, allowing for `losses`.
  static void ExpectBuckets(const Records& records, std::vector<Loss> losses = {});
  /// Returns the failures with that reason, over all nodes.
  [[nodiscard]] double Failures(std::string_view reason) const;
  /// Returns the Redis errors of that kind, over all nodes.
  [[nodiscard]] double Errors(std::string_view kind) const;

  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<Load> load_;
  std::optional<Canary> canary_;
  std::vector<std::int64_t> returns_;
  long resident_ = 0;
  int descriptors_ = 0;
};

}  // namespace tidegate::redis_test

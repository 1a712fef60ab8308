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

/// A whole number from the environment, for runs that are longer than those of every day.
[[nodiscard]] int Setting(const char* name, int otherwise);

/// Three tidegate processes under load on one Redis, and what every fault has to leave intact:
/// each question has one answer, in time; no process dies or grows; limits hold; the store answers
/// again within a second of its return.
class FaultCase : public testing::Test {
 protected:
  /// One key of the bucket rules below.
  static constexpr Promise kBucket{100, 1'000'000, 50};
  /// Answers come by the deadline of 20 ms, and on a busy machine 5 ms later.
  static constexpr double kInTimeMs = 25;
  /// A store that is back must answer within so long.
  static constexpr std::int64_t kBackUs = 1'000'000;
  static constexpr std::uint32_t kKeys = 10;
  /// A deadline for cases in which no request may fail: a busy machine does not pass it.
  static constexpr const char* kPatient = "500ms";

  /// Rules `closed`, `open` and `local`, each a bucket of 100/s and 50, and `once`, which counts
  /// every charge of a day.
  [[nodiscard]] static std::string Rules();
  /// `more`: of `store`, as in `tls: {...}`.
  void Start(const std::string& url, const std::string& rules = Rules(), int threads = 1,
             std::string_view deadline = "20ms", std::string_view more = {});
  /// About 3,000 questions a second, three times what the limits let pass.
  void Ask(const Load::Next& next, double rate = 3000, int connections = 16);
  void Ask(std::string_view rule) { Ask(DecideInTurn(std::string(rule), kKeys)); }

  /// Waits until the store has answered every node since then. The times are checked at the end.
  void Back(std::int64_t since_us);
  /// From now on nothing may grow.
  void NothingGrows();
  /// Stops asking and checks all that holds for every fault. Records of all sources.
  Records Finish();
  void ExpectInTime(const Records& records) const;

  /// Those that the store or its cache answered.
  [[nodiscard]] static Records OfStore(const Records& records);
  [[nodiscard]] static Records Of(DecidedBy decided_by, const Records& records);
  /// Every answer came from the store or its cache, but for those that came late because this
  /// machine had no time: the callers noticed nothing.
  void ExpectUnnoticed(const Records& records) const;
  /// The bucket rules hold for what the store admitted, but for these losses.
  static void ExpectBuckets(const Records& records, std::vector<Loss> losses = {});
  /// Failures of that reason, over the fleet.
  [[nodiscard]] double Failures(std::string_view reason) const;
  /// Errors of Redis of that kind, over the fleet.
  [[nodiscard]] double Errors(std::string_view kind) const;

  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<Load> load_;
  std::optional<Canary> canary_;
  std::vector<std::int64_t> returns_;
  long resident_ = 0;
  int descriptors_ = 0;
};

}  // namespace tidegate::redis_test

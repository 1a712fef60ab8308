// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "net/descriptor.hpp"
#include "redis_drive.hpp"

namespace tidegate::bench {

/// Sends requests at a steady rate, whether or not earlier requests are decided. Latency counts
/// from the time at which a request should have been started.
class PacedLoop final : private net::Watcher {
 public:
  struct Load {
    Draws* draws;
    const Quota* quota;
    double per_second;
    double seconds;
  };
  struct Outcome {
    std::vector<double> micros;  ///< Latency of each request in microseconds, sorted.
    std::uint64_t inexact = 0;   ///< Requests that a failure policy decided.
  };

  /// REQUIRES: both arguments outlive this object.
  PacedLoop(RedisStoreHost& host, const std::vector<std::string>& identities);
  ~PacedLoop() override;
  PacedLoop(const PacedLoop&) = delete;
  PacedLoop& operator=(const PacedLoop&) = delete;

  Outcome Run(const Load& load);

 private:
  using Clock = std::chrono::steady_clock;

  void OnReady(std::uint32_t events) override;
  void Ring(std::chrono::nanoseconds every);
  void OnFinished(Question& question) noexcept;
  void EndIfAllAreAnswered();

  RedisStoreHost& host_;
  const std::vector<std::string>& identities_;
  net::Descriptor timer_;
  std::vector<std::unique_ptr<Question>> questions_;
  std::vector<Question*> free_;
  Load load_{};
  Clock::duration interval_{};
  Clock::time_point next_;
  std::size_t left_ = 0;  ///< Requests to be started.
  std::size_t open_ = 0;  ///< Requests that are started and not decided.
  bool running_ = false;
  Outcome outcome_;
  std::promise<Outcome> promise_;
};

}  // namespace tidegate::bench

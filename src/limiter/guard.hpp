// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>

#include "limiter/deny_cache.hpp"
#include "limiter/failure_policy.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/client.hpp"
#include "tidegate/store.hpp"

namespace tidegate {

/// Redis as one reactor's doors see it: denials that still hold are answered here, everything else
/// by Redis, and what Redis does not answer by its rules' failure policies. Every call is finished,
/// by its deadline at the latest.
class Guard final : public AsyncStore, private redis::Client::Listener {
 public:
  enum class Severity : std::uint8_t { kInfo, kWarning, kError };
  struct Options {
    redis::Client::Options redis;
    std::function<std::int64_t()> nodes = [] { return 1; };  ///< That share the quotas.
    /// For people; nothing is said twice in a row.
    std::function<void(Severity, const std::string&)> log = [](Severity, const std::string&) {};
  };
  struct Stats {
    redis::Count cache_hits;
    std::array<std::array<redis::Count, redis::kReasons>, 5> failures;  ///< By rung and reason.
  };

  /// `local`: for charges whose policy it is. It and the reactor outlive this.
  Guard(net::Reactor& reactor, Options options, Store& local);

  /// On the reactor's thread, as everything here but the statistics.
  void Connect() { client_.Start(); }
  /// While it holds, Redis is not asked and failure policies answer: what keys are called is not
  /// agreed on yet.
  void Hold() noexcept { held_ = true; }
  void Release() noexcept { held_ = false; }
  /// Answers all that wait by their policies; nobody may ask afterwards.
  void Shutdown() { client_.Stop(); }
  void Start(Call& call) noexcept override;

  /// Calls that wait for Redis.
  [[nodiscard]] std::size_t waiting() const noexcept { return client_.waiting(); }
  [[nodiscard]] redis::Client& client() noexcept { return client_; }
  [[nodiscard]] const redis::ClientStats& redis_stats() const noexcept { return client_.stats(); }
  [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

 private:
  // redis::Client::Listener
  void OnAnswered(Call& call, redis::Client::Clock::time_point sent) override;
  void OnFailed(Call& call, redis::Reason reason) override;
  void OnInvalidated(std::string_view key) override;
  void OnSubscribed(bool subscribed) override;
  void OnNotice(Notice notice, redis::ErrorKind kind, std::string_view text) override;

  /// Also what equal calls are known by.
  [[nodiscard]] std::optional<Error> Prepare(Call& call);
  [[nodiscard]] std::optional<Error> Identify(Call& call);
  void Keep(const Call& denied, redis::Client::Clock::time_point sent);

  const Options options_;
  const Fingerprinter fingerprinter_;
  FailurePolicy policy_;
  DenyCache cache_;
  bool may_cache_ = false;
  bool held_ = false;
  std::string key_;  ///< Used again and again.
  std::string last_said_;
  Stats stats_;
  redis::Client client_;
};

}  // namespace tidegate

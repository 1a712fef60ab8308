// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>

#include "limiter/deny_cache.hpp"
#include "limiter/failure_policy.hpp"
#include "limiter/guard_stats.hpp"
#include "limiter/span.hpp"
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
    /// The fleet's register has changed, somebody says.
    std::function<void()> on_register = [] {};
  };
  /// `local`: for charges whose policy it is. It and the reactor outlive this.
  Guard(net::Reactor& reactor, Options options, Store& local);

  /// On the reactor's thread, as everything here but the statistics.
  void Connect() { client_.Start(); }
  /// While it holds, Redis is not asked and failure policies answer: what keys are called is not
  /// agreed on yet.
  void Hold() noexcept { held_ = true; }
  void Release() noexcept { held_ = false; }
  /// Drops the cached denials that involve this key, whatever the rule's algorithm: an override of
  /// it has changed. Denials of other keys stay, but for the few that share its place in the cache.
  void ForgetDenials(std::string_view rule, std::string_view identity);
  /// Answers all that wait by their policies; nobody may ask afterwards.
  void Shutdown() { client_.Stop(); }
  void Start(Call& call) noexcept override;

  /// Calls that wait for Redis.
  [[nodiscard]] std::size_t waiting() const noexcept { return client_.waiting(); }
  [[nodiscard]] redis::Client& client() noexcept { return client_; }
  [[nodiscard]] std::size_t most_waiting() const noexcept { return client_.most_waiting(); }
  [[nodiscard]] const redis::ClientStats& redis_stats() const noexcept { return client_.stats(); }
  [[nodiscard]] const GuardStats& stats() const noexcept { return stats_; }

 private:
  // redis::Client::Listener
  void OnAnswered(Call& call, redis::Client::Clock::time_point sent, bool told) override;
  void OnFailed(Call& call, redis::Reason reason) override;
  void OnSplit(Call& call) override;
  void OnInvalidated(std::string_view key) override;
  void OnConnections() override;
  void OnNotice(Notice notice, redis::ErrorKind kind, const std::string& where,
                const std::string& text) override;

  /// Also what equal calls are known by.
  [[nodiscard]] std::optional<Error> Prepare(Call& call);
  /// Redis, of which nothing was asked yet.
  void Ask(Call& call);
  void Keep(const Call& denied, redis::Client::Clock::time_point sent);

  const Options options_;
  const Fingerprinter fingerprinter_;
  FailurePolicy policy_;
  DenyCache cache_;
  bool held_ = false;
  const std::string register_;                    ///< What Redis knows it by.
  std::string key_;                               ///< Used again and again.
  std::map<std::string, std::string> last_said_;  ///< By whom it is about.
  GuardStats stats_;
  redis::Client client_;
  Spans spans_;
};

}  // namespace tidegate

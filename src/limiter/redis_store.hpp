// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "limiter/cross_slot_call.hpp"
#include "limiter/deny_cache.hpp"
#include "limiter/failure_policy.hpp"
#include "store/call.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/client.hpp"
#include "store/redis/client_stats.hpp"
#include "store/redis/redis_error.hpp"
#include "store/store.hpp"
#include "tidegate/decision.hpp"

namespace tidegate {

/// The Redis store of one reactor. It answers calls from its cache if a denial still holds,
/// otherwise by Redis or, if Redis does not answer, by the failure policies of the rules. Every
/// call is finished by its deadline.
class RedisStore final : public AsyncStore, private redis::Client::Listener {
 public:
  enum class Severity : std::uint8_t { kInfo, kWarning, kError };
  struct Options {
    redis::Client::Options redis;
    std::function<std::int64_t()> nodes = [] { return 1; };  ///< How many nodes share the quotas.
    /// Logs a message for people. The same message is not logged twice in a row.
    std::function<void(Severity, const std::string&)> log = [](Severity, const std::string&) {};
    std::function<void()> on_register = [] {};  ///< Called when the fleet's overrides have changed.
  };
  /// `local` counts charges whose policy is `local`. It and the reactor outlive this object. All
  /// methods but the statistics are called on the reactor's thread.
  RedisStore(net::Reactor& reactor, Options options, Store& local);

  void Connect() { client_.Start(); }
  /// Until Release, nothing is sent to Redis and failure policies answer: the nodes of the fleet do
  /// not agree on the names of keys yet.
  void Hold() noexcept { held_ = true; }
  void Release() noexcept { held_ = false; }
  /// Drops the cached denials that involve this key, whatever the rule's algorithm. Call it when an
  /// override of the key has changed.
  void ForgetDenials(std::string_view rule, std::string_view identity) {
    cache_.Invalidate(rule, identity);
  }
  /// Answers all waiting calls by their policies. REQUIRES: no call is started afterwards.
  void Shutdown() { client_.Stop(); }
  void Start(Call& call) noexcept override;

  /// Returns the number of calls that wait for Redis.
  [[nodiscard]] std::size_t waiting() const noexcept { return client_.waiting(); }
  [[nodiscard]] redis::Client& client() noexcept { return client_; }
  [[nodiscard]] std::size_t most_waiting() const noexcept { return client_.most_waiting(); }
  [[nodiscard]] const redis::ClientStats& redis_stats() const noexcept { return client_.stats(); }
  [[nodiscard]] const RedisStoreStats& stats() const noexcept { return stats_; }

 private:
  // redis::Client::Listener
  void OnAnswered(Call& call, redis::Client::Clock::time_point sent, bool subscribed) override;
  void OnFailed(Call& call, redis::Reason reason) override;
  void OnSplit(Call& call) override {
    if (call.record.owner != nullptr) return call.record.owner->OnSplit(call);
    Send(call);
  }
  void OnInvalidated(std::string_view key) override;
  /// Clears the cache, because invalidations were missed while there was no subscription.
  void OnConnections() override { cache_.Clear(); }
  void OnNotice(Notice notice, redis::ErrorKind kind, const std::string& where,
                const std::string& text) override;

  /// Checks the call, and sets `record.request`.
  [[nodiscard]] std::optional<Error> Prepare(Call& call);
  /// Sends a call of which Redis has executed nothing.
  void Send(Call& call);

  const Options options_;
  const Fingerprinter fingerprinter_;
  FailurePolicy policy_;
  DenyCache cache_;
  bool held_ = false;
  const std::string register_;                      ///< The key of the overrides in Redis.
  std::string subject_;                             ///< A buffer that is reused.
  std::map<std::string, std::string> last_logged_;  ///< The last message of each node.
  RedisStoreStats stats_;
  redis::Client client_;
  CrossSlotCalls cross_slot_calls_;
};

}  // namespace tidegate

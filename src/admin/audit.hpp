// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "frontends/auth_failures.hpp"
#include "net/http_exchange.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/shared_overrides.hpp"

namespace tidegate {

/// An audit record: either a change by an operator (its name, the key and the action), or a summary
/// of failed authentications (see AuthAudit).
struct AuditEntry {
  /// Returns an entry for the request in `exchange`.
  [[nodiscard]] static AuditEntry Of(const std::string& node, const std::string& by,
                                     const net::HttpExchange& exchange, std::string_view action);

  std::string node = {};
  std::string by = {};      ///< The name of the caller's token, or how it authenticated otherwise.
  std::string from = {};    ///< The caller's address.
  std::string action = {};  ///< `ban`, `reset`, `auth_failed`, ...
  std::string rule = {};    ///< The rule and the key are empty if no key was changed (`reload`).
  std::string key = {};     ///< The key's identity; secrets in it are hashed.
  std::string detail = {};  ///< Text for people.

  [[nodiscard]] boost::json::object Json() const;
  [[nodiscard]] std::string Text() const { return boost::json::serialize(Json()); }
  [[nodiscard]] static std::optional<AuditEntry> Parse(std::string_view text);

  /// Writes to the node's log that the change was made or, if not `applied`, had no effect.
  void LogDone(bool applied) const;
  /// Writes to the node's log that the change was not made, or may not have been made.
  void LogFailed(const std::string& why, std::string_view outcome) const;
};

/// Writes failed authentications to the audit log: one record at once, then at most one every
/// kInterval, with the number of failures since the last. Any client can cause failures, so neither
/// the log nor Redis may grow with their number; SharedOverrides keeps them apart from the records
/// of operators. Add may be called on any thread, everything else on the reactor's.
class AuthAudit final : private net::Timer {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  /// `reactor` and `shared_overrides` must outlive this object.
  AuthAudit(net::Reactor& reactor, SharedOverrides& shared_overrides, std::string node)
      : net::Timer(reactor.timers()),
        reactor_(reactor),
        register_(shared_overrides),
        node_(std::move(node)) {}

  void Add(const std::string& listener, const AuthFailure& failure);

 private:
  /// The failures that the next record covers.
  struct Summary {
    std::uint64_t total = 0;
    /// The number of failures by listener and reason: 24 entries at most.
    std::map<std::pair<std::string, AuthFailure::Reason>, std::uint64_t> counts;
    net::Peer peer;  ///< The client of the latest failure.
    std::string by;  ///< The caller's name in the latest failure.
  };

  void OnTimer(Clock::time_point now) override;
  /// Returns the record, with details as in `3 failures: api wrong 2, resp missing 1`.
  [[nodiscard]] std::string RecordOf(const Summary& summary) const;

  net::Reactor& reactor_;
  SharedOverrides& register_;
  const std::string node_;
  std::mutex mutex_;
  Summary summary_;      ///< Guarded by mutex_.
  bool posted_ = false;  ///< True if OnTimer will be called. Guarded by mutex_.
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "frontends/auth_failures.hpp"
#include "net/reactor.hpp"
#include "net/timer.hpp"
#include "store/fleet_register.hpp"

namespace tidegate {

/// The failed authentications that the next audit record covers. Not thread-safe.
class AuthFailureSummary {
 public:
  static constexpr std::string_view kAction = "auth_failed";

  void Add(const std::string& listener, const AuthFailure& failure);
  [[nodiscard]] bool empty() const noexcept { return total_ == 0; }
  /// Returns an audit record: address and name of the latest failure, and the number of failures by
  /// listener and reason, as in `3 failures: api wrong 2, resp missing 1`.
  [[nodiscard]] std::string Record(const std::string& node) const;

 private:
  std::uint64_t total_ = 0;
  /// By listener and reason: 24 entries at most.
  std::map<std::pair<std::string, AuthFailure::Reason>, std::uint64_t> counts_;
  net::Peer peer_;
  std::string by_;
};

/// Writes failed authentications to the audit log: one record at once, then at most one every
/// kInterval, with the number of failures since the last. Anybody can cause failures, so neither
/// the log nor Redis may grow with their number; FleetRegister keeps them apart from the records of
/// operators. Add may be called on any thread, everything else on the reactor's.
class AuthAudit final : private net::Timer {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  /// Reactor and register must outlive the object.
  AuthAudit(net::Reactor& reactor, FleetRegister& fleet_register, std::string node);

  void Add(const std::string& listener, const AuthFailure& failure);

 private:
  void OnTimer(Clock::time_point now) override;

  net::Reactor& reactor_;
  FleetRegister& register_;
  const std::string node_;
  std::mutex mutex_;
  AuthFailureSummary summary_;  ///< Guarded by mutex_.
  bool posted_ = false;         ///< Guarded by mutex_. OnTimer will be called.
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace tidegate

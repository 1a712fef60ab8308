// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "identity/address.hpp"
#include "net/http_exchange.hpp"
#include "telemetry/log.hpp"

namespace tidegate {

/// Limits how often an address may present wrong credentials: kBurst times at once, then once every
/// kInterval. All IPv6 addresses of a /64 share one limit, because a client can choose the other 64
/// bits.
///
/// Right credentials are always accepted, even from an address beyond its limit: otherwise one
/// client could lock out all others behind the same NAT or proxy, and tokens of 16 characters or
/// more cannot be guessed anyway. A full table replaces the entries that are next to expire.
/// Thread-safe.
class FailureThrottle {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kBurst = 10;
  static constexpr std::chrono::seconds kInterval{1};
  static constexpr std::size_t kEntries = 4096;

  /// `seed` decides which addresses share a part of the table; it must be unpredictable.
  explicit FailureThrottle(std::uint64_t seed);

  /// Counts one failure. Returns nullopt if the address is within its limit, otherwise the time
  /// until its next failure is allowed.
  [[nodiscard]] std::optional<Clock::duration> Add(const Address& address,
                                                   Clock::time_point now) noexcept;

 private:
  /// The number of entries in which an address can be stored. A search reads 8 * 24 bytes.
  static constexpr std::size_t kWays = 8;

  struct Entry {
    Address address;
    /// The time at which all failures are forgiven: each failure delays it by kInterval.
    Clock::time_point clear_at = Clock::time_point::min();
  };

  const std::uint64_t seed_;
  std::mutex mutex_;
  const std::unique_ptr<std::array<Entry, kEntries>> entries_;
};

/// One failed authentication. The texts are valid only during the call that reports it.
struct AuthFailure {
  enum class Reason : std::uint8_t {
    kMissing,         ///< The caller presented no credentials, and the listener requires them.
    kWrong,           ///< The caller presented an unknown token.
    kRights,          ///< The caller does not have the right that the operation needs.
    kCertificate,     ///< The certificate was refused by TLS, or is not in access.certificates.
    kUntrustedProxy,  ///< A peer that is not a trusted proxy used a PROXY protocol listener.
    kProxyHeader,     ///< A trusted proxy sent a malformed PROXY protocol header.
  };
  static constexpr std::size_t kReasons = 6;
  /// Returns the name of the reason in metrics and the audit log.
  [[nodiscard]] static std::string_view Name(Reason reason) noexcept;

  net::Peer peer;
  Reason reason = Reason::kMissing;
  std::string_view request = {};      ///< The path or the command; empty before the first one.
  std::string_view problem = {};      ///< Why a certificate or a header is invalid, if known.
  std::string_view by = "(unknown)";  ///< The name of the caller's token or certificate, if known.
  enum class Peers : std::uint8_t {
    kClient,  ///< The peer is one client.
    kProxy,   ///< The peer is a trusted proxy: other clients have the same address.
  } peers = Peers::kClient;
};

/// AuthFailure::problem of a certificate that the TLS handshake accepted.
inline constexpr std::string_view kNotListed = "the certificate is not in access.certificates";

/// Counts, logs and audits the failed authentications of one listener, and throttles addresses that
/// present wrong credentials. Logs at most one line a second, and never a token. Thread-safe.
class AuthFailures {
 public:
  using Clock = FailureThrottle::Clock;
  using Reason = AuthFailure::Reason;
  static constexpr std::chrono::seconds kLogInterval{1};
  /// Called for every failure, on the thread that reports it.
  using Audit = std::function<void(const std::string& listener, const AuthFailure& failure)>;

  /// `throttle` is shared by all listeners and must outlive this object.
  AuthFailures(std::string listener, FailureThrottle& throttle)
      : listener_(std::move(listener)), throttle_(throttle) {}

  /// REQUIRES: called before the first Record.
  void SetAudit(Audit audit) { audit_ = std::move(audit); }

  /// Records one failure. Returns nullopt if the failure may be answered as usual. If the address
  /// presented wrong credentials too often, returns the time that the client should wait; the
  /// connection must then be ended. Only wrong credentials count towards the limit. Those that a
  /// proxy forwards do not count, because one client would throttle all others behind the proxy.
  [[nodiscard]] std::optional<std::chrono::seconds> Record(
      const AuthFailure& failure, Clock::time_point now = Clock::now()) noexcept;

  [[nodiscard]] const std::string& listener() const noexcept { return listener_; }
  [[nodiscard]] std::uint64_t count(Reason reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }
  /// Returns how many failed authentications were above the limit of their client address.
  [[nodiscard]] std::uint64_t throttled() const noexcept {
    return throttled_.load(std::memory_order_relaxed);
  }

 private:
  void LogFailure(const AuthFailure& failure, Clock::time_point now);

  const std::string listener_;
  FailureThrottle& throttle_;
  Audit audit_;
  std::array<std::atomic<std::uint64_t>, AuthFailure::kReasons> counts_{};
  std::atomic<std::uint64_t> throttled_{0};
  LogInterval log_interval_{kLogInterval};
};

}  // namespace tidegate

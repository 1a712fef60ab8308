// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "frontends/failure_throttle.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

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
  /// Returns the reason as metrics and the audit log name it.
  [[nodiscard]] static std::string_view Name(Reason reason) noexcept;

  net::Peer peer;
  Reason reason = Reason::kMissing;
  std::string_view request = {};      ///< The path or the command; empty: there was none yet.
  std::string_view problem = {};      ///< Why a certificate or a header is invalid, if known.
  std::string_view by = "(unknown)";  ///< The name of its token or certificate, if known.
  enum class Peers : std::uint8_t {
    kClient,  ///< The peer is one client.
    kProxy,   ///< The peer is a trusted proxy: other clients have the same address.
  } peers = Peers::kClient;
};

/// The problem of a certificate that the TLS handshake accepted.
inline constexpr std::string_view kNotListed = "the certificate is not in access.certificates";

/// Counts, logs and audits the failed authentications of one listener, and throttles addresses that
/// present wrong credentials. Logs at most one line a second, so that a caller that tries tokens is
/// noticed but cannot fill the log. Never logs a token. Thread-safe.
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

  /// Records one failure. Returns nullopt if it may be answered as usual. Returns a time if the
  /// address has presented wrong credentials too often: the caller must end the connection, and the
  /// client should wait that long. Failures without wrong credentials never count for that, and
  /// neither do those of proxies, because one client would throttle all others.
  [[nodiscard]] std::optional<std::chrono::seconds> Record(
      const AuthFailure& failure, Clock::time_point now = Clock::now()) noexcept;

  [[nodiscard]] const std::string& listener() const noexcept { return listener_; }
  [[nodiscard]] std::uint64_t count(Reason reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }
  /// Returns how many failures were beyond the limit of their address.
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
  std::atomic<std::uint64_t> suppressed_{0};  ///< Failures since the last line in the log.
  std::atomic<Clock::rep> next_log_{Clock::time_point::min().time_since_epoch().count()};
};

}  // namespace tidegate

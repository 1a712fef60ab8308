// SPDX-License-Identifier: Apache-2.0
#include "frontends/auth_failures.hpp"

#include "rules/address.hpp"
#include "rules/printable.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using Reason = AuthFailure::Reason;

std::string_view MessageOf(Reason reason) noexcept {
  switch (reason) {
    case Reason::kMissing:
      return "authentication failed: no credentials";
    case Reason::kWrong:
      return "authentication failed: unknown token";
    case Reason::kRights:
      return "request rejected: insufficient rights";
    case Reason::kCertificate:
      return "authentication failed: client certificate refused";
    case Reason::kUntrustedProxy:
      return "connection rejected: the listener requires the PROXY protocol, and "
             "client_ip.trusted_proxies does not contain the peer";
    case Reason::kProxyHeader:
      return "connection rejected: malformed PROXY protocol header";
  }
  return {};
}

/// True if the caller presented credentials, and they are wrong.
constexpr bool IsGuess(Reason reason) noexcept {
  return reason == Reason::kWrong || reason == Reason::kCertificate;
}

}  // namespace

std::string_view AuthFailure::Name(Reason reason) noexcept {
  switch (reason) {
    case Reason::kMissing:
      return "missing";
    case Reason::kWrong:
      return "wrong";
    case Reason::kRights:
      return "rights";
    case Reason::kCertificate:
      return "certificate";
    case Reason::kUntrustedProxy:
      return "untrusted_proxy";
    case Reason::kProxyHeader:
      return "proxy_header";
  }
  return {};
}

std::optional<std::chrono::seconds> AuthFailures::Record(const AuthFailure& failure,
                                                         Clock::time_point now) noexcept {
  counts_[static_cast<std::size_t>(failure.reason)].fetch_add(1, std::memory_order_relaxed);
  LogFailure(failure, now);
  if (audit_) audit_(listener_, failure);
  if (!IsGuess(failure.reason) || failure.peers == AuthFailure::Peers::kProxy) return std::nullopt;
  const auto wait = throttle_.Add(Address(failure.peer.bytes), now);
  if (!wait) return std::nullopt;
  throttled_.fetch_add(1, std::memory_order_relaxed);
  return std::chrono::ceil<std::chrono::seconds>(*wait);
}

void AuthFailures::LogFailure(const AuthFailure& failure, Clock::time_point now) {
  Clock::rep next = next_log_.load(std::memory_order_relaxed);
  const Clock::rep at = now.time_since_epoch().count();
  const Clock::rep then = (now + kLogInterval).time_since_epoch().count();
  // If several threads get here at once, only one of them logs.
  if (at < next || !next_log_.compare_exchange_strong(next, then, std::memory_order_relaxed)) {
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t before = suppressed_.exchange(0, std::memory_order_relaxed);
  Log::Warning(MessageOf(failure.reason), {{"listener", listener_},
                                           {"peer", Address(failure.peer.bytes).Text()},
                                           {"request", Printable(failure.request)},
                                           {"by", std::string(failure.by)},
                                           {"problem", Printable(failure.problem)},
                                           {"suppressed", std::to_string(before)}});
}

}  // namespace tidegate

// SPDX-License-Identifier: Apache-2.0
#include "frontends/auth_failures.hpp"

#include <algorithm>
#include <span>

#include "base/hash.hpp"
#include "base/message_text.hpp"
#include "telemetry/log.hpp"

namespace tidegate {
namespace {

using Reason = AuthFailure::Reason;

struct ReasonText {
  std::string_view name;
  std::string_view message;
};
/// The texts, indexed by Reason.
constexpr std::array<ReasonText, AuthFailure::kReasons> kReasonTexts = {{
    {"missing", "authentication failed: no credentials"},
    {"wrong", "authentication failed: unknown token"},
    {"rights", "request rejected: insufficient rights"},
    {"certificate", "authentication failed: client certificate refused"},
    {"untrusted_proxy",
     "connection rejected: the listener requires the PROXY protocol, and "
     "client_ip.trusted_proxies does not contain the peer"},
    {"proxy_header", "connection rejected: malformed PROXY protocol header"},
}};

/// Returns true if the caller presented credentials, and they are wrong.
constexpr bool IsGuess(Reason reason) noexcept {
  return reason == Reason::kWrong || reason == Reason::kCertificate;
}

}  // namespace

std::string_view AuthFailure::Name(Reason reason) noexcept {
  return kReasonTexts[static_cast<std::size_t>(reason)].name;
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
  const std::uint64_t count = log_interval_.Count(now);
  if (count == 0) return;
  Log::Warning(kReasonTexts[static_cast<std::size_t>(failure.reason)].message,
               {{"listener", listener_},
                {"peer", Address(failure.peer.bytes).Text()},
                {"request", Printable(failure.request)},
                {"by", std::string(failure.by)},
                {"problem", Printable(failure.problem)},
                {"suppressed", std::to_string(count - 1)}});
}

FailureThrottle::FailureThrottle(std::uint64_t seed)
    : seed_(seed), entries_(std::make_unique<std::array<Entry, kEntries>>()) {}

std::optional<FailureThrottle::Clock::duration> FailureThrottle::Add(
    const Address& address, Clock::time_point now) noexcept {
  const Address counted = address.MaskedV6(64);
  const std::size_t set = Hash(counted.bytes(), seed_) % (kEntries / kWays);
  const std::lock_guard lock(mutex_);
  const std::span<Entry> ways(entries_->data() + set * kWays, kWays);
  auto found = std::ranges::find(ways, counted, &Entry::address);
  if (found == ways.end()) {
    found = std::ranges::min_element(ways, {}, &Entry::clear_at);
    *found = {counted, now};
  }
  const Clock::time_point clear_at = std::max(found->clear_at, now);
  const Clock::duration over = clear_at + kInterval - (now + kBurst * kInterval);
  if (over > Clock::duration::zero()) return over;
  found->clear_at = clear_at + kInterval;
  return std::nullopt;
}

}  // namespace tidegate

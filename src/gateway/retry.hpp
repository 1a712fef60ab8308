// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "rules/gateway_spec.hpp"

namespace tidegate {

/// How an attempt failed.
enum class AttemptFailure : std::uint8_t {
  kConnect,         ///< No connection: nothing was sent.
  kConnectTimeout,  ///< The same, after waiting.
  kReset,           ///< The connection ended before an answer began.
  kTimeout,         ///< No answer in time.
  kBadAnswer,       ///< What came is no HTTP, or ambiguous.
  kStatus,          ///< 502, 503 or 504.
};

/// What the request allows.
struct Replay {
  bool nothing_sent = false;  ///< Not a byte of it has left.
  bool idempotent = false;    ///< By its method (RFC 9110, 9.2.2).
  bool whole = false;         ///< All of it is still there to be sent again.
};

[[nodiscard]] constexpr bool IsIdempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE" || method == "TRACE";
}

/// Whether it may be sent once more, after `attempts` so far. What was sent and is not idempotent
/// never is: it may have been carried out.
[[nodiscard]] inline bool MayRetry(const UpstreamSpec::Retries& retries, AttemptFailure failure,
                                   int status, int attempts, const Replay& replay) noexcept {
  if (attempts > retries.attempts || !replay.whole) return false;
  if (replay.nothing_sent) return true;
  if (!replay.idempotent) return false;
  switch (failure) {
    case AttemptFailure::kConnect:
    case AttemptFailure::kConnectTimeout:
    case AttemptFailure::kReset:
      return true;
    case AttemptFailure::kTimeout:
      return retries.timeout;
    case AttemptFailure::kStatus:
      return std::ranges::find(retries.statuses, status) != retries.statuses.end();
    case AttemptFailure::kBadAnswer:
      return false;
  }
  return false;
}

/// Retries of one reactor to one upstream are a share of its requests, so that a struggling
/// upstream is not struck down by them; a hundred are put by, for the moment at which one of its
/// targets is killed with as many requests under way.
class RetryBudget {
 public:
  explicit RetryBudget(int percent) noexcept : percent_(percent) {}

  void OnRequest() noexcept { cents_ = std::min<std::int64_t>(cents_ + percent_, kMost); }
  [[nodiscard]] bool Take() noexcept {
    if (cents_ < 100) return false;
    cents_ -= 100;
    return true;
  }

 private:
  static constexpr std::int64_t kMost = 10'000;  ///< A hundred retries.
  const int percent_;
  std::int64_t cents_ = kMost;
};

}  // namespace tidegate

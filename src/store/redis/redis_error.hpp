// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "store/redis/endpoint.hpp"
#include "store/redis/key_names.hpp"
#include "tidegate/decision.hpp"

namespace tidegate::redis {

/// Why Redis did not decide a call: the label `reason` of `tidegate_failures_total`.
enum class Reason : std::uint8_t {
  kRedisError,   ///< Redis sent an error, or the connection broke.
  kBadResponse,  ///< The reply is malformed.
  kBadTypes,     ///< The reply has the wrong type.
  kTimeout,      ///< No reply came before the deadline.
  kBreakerOpen,  ///< The call was not sent, because Redis has been failing.
  kQueueFull,    ///< The call was not sent, because too many calls wait already.
};
inline constexpr std::size_t kReasons = 6;
[[nodiscard]] std::string_view Name(Reason reason) noexcept;
/// Returns the same reason as a Decision reports it.
[[nodiscard]] constexpr tidegate::Reason DecisionReason(Reason reason) noexcept {
  return static_cast<tidegate::Reason>(static_cast<std::size_t>(tidegate::Reason::kStoreError) +
                                       static_cast<std::size_t>(reason));
}
static_assert(DecisionReason(Reason::kQueueFull) == tidegate::Reason::kQueueFull);

/// Whether Redis carried out a call that failed.
enum class Executed : std::uint8_t {
  kNo,       ///< The call was not sent, or Redis refused it.
  kUnknown,  ///< It was sent, and there was no reply or a malformed one.
};

/// The kinds of error replies.
enum class ErrorKind : std::uint8_t {
  kNoScript,
  kLoading,
  kBusy,
  kTryAgain,
  kClusterDown,
  kMasterDown,
  kMoved,
  kAsk,
  kReadOnly,
  kOutOfMemory,
  kMisconf,
  kNoReplicas,
  kNoPerm,
  kNoAuth,
  kWrongPass,
  kNoProto,
  kTls,  ///< A certificate or a handshake failed; not an error reply of Redis.
  kOther,
};
inline constexpr std::size_t kErrorKinds = 18;
[[nodiscard]] std::string_view Name(ErrorKind kind) noexcept;

/// Returns the kind of `NOSCRIPT No matching script...`, or of an error that a script raised and
/// that older servers wrap: `ERR Error running script (...): @user_script:1: -OOM command not
/// allowed...`.
[[nodiscard]] ErrorKind KindOf(std::string_view error) noexcept;

/// Returns true if Redis lacks memory, disk or replicas: then it rejects only commands that write.
[[nodiscard]] constexpr bool RefusesWritesOnly(ErrorKind kind) noexcept {
  return kind == ErrorKind::kOutOfMemory || kind == ErrorKind::kMisconf ||
         kind == ErrorKind::kNoReplicas;
}

/// Returns kNo if Redis sends this error without having executed anything: before the command, or
/// at the first write of a script. Any other error may come from the middle of a script.
[[nodiscard]] constexpr Executed ExecutedDespite(ErrorKind error) noexcept {
  return error == ErrorKind::kOther || error == ErrorKind::kTls ? Executed::kUnknown
                                                                : Executed::kNo;
}

/// What to do with a batch after an error reply. Redis did not execute the batch.
enum class Remedy : std::uint8_t {
  kSendText,   ///< Send the text of the script instead of its SHA-1, which loads it again.
  kRetryOnce,  ///< Send it again after a moment if the deadline allows.
  kElsewhere,  ///< Another node serves the slot, or no node serves it now.
  kReconnect,  ///< The server is not the master any more, or requires another login.
  kGiveUp,     ///< Apply the failure policy: an operator has to act.
};
[[nodiscard]] Remedy RemedyOf(ErrorKind kind) noexcept;

/// A redirection by Redis Cluster: of all requests for a slot (MOVED), or of one request, while its
/// slot moves to another node (ASK).
struct Redirect {
  enum class Kind : std::uint8_t { kMoved, kAsk };
  Kind kind = Kind::kMoved;
  Slot slot = 0;
  Endpoint to;  ///< An empty host: the host of the node that sent the redirection.

  friend bool operator==(const Redirect&, const Redirect&) = default;
};

/// Reads `MOVED 3999 10.0.0.7:6381`, `ASK 3999 fd00::7:6381` or `MOVED 3999 :6381`; a host of `?`
/// is as good as none. Returns nothing if `error` is another error or malformed.
[[nodiscard]] std::optional<Redirect> ReadRedirect(std::string_view error);

}  // namespace tidegate::redis

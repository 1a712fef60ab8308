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

/// Why an answer is not the store's: what `tidegate_failures_total` is counted by.
enum class Reason : std::uint8_t {
  kRedisError,   ///< Redis refused, or the connection broke.
  kBadResponse,  ///< A reply that makes no sense.
  kBadTypes,     ///< A reply of the wrong type.
  kTimeout,      ///< No reply within the deadline.
  kBreakerOpen,  ///< Not sent: Redis has been failing.
  kQueueFull,    ///< Not sent: too many wait already.
};
inline constexpr std::size_t kReasons = 6;
[[nodiscard]] std::string_view Name(Reason reason) noexcept;
/// The same reason, as a Decision tells it.
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
  kTls,  ///< Not said by Redis: what certificates and handshakes come to.
  kOther,
};
inline constexpr std::size_t kErrorKinds = 18;
[[nodiscard]] std::string_view Name(ErrorKind kind) noexcept;

/// `NOSCRIPT No matching script...`, or the same inside what a script raised, as older servers wrap
/// it: `ERR Error running script (...): @user_script:1: -OOM command not allowed...`.
[[nodiscard]] ErrorKind KindOf(std::string_view error) noexcept;

/// Redis is well but for memory, disk or replicas: only what writes fails.
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

/// What may be done with a batch that was answered so. None of them was executed.
enum class Remedy : std::uint8_t {
  kSendText,   ///< The script itself, and load it again.
  kRetryOnce,  ///< After a moment, inside the deadline.
  kElsewhere,  ///< Another node would do it, or its slot is not served now.
  kReconnect,  ///< This is not the master any more, or not ours to ask.
  kGiveUp,     ///< A person has to act; failure policy.
};
[[nodiscard]] Remedy RemedyOf(ErrorKind kind) noexcept;

/// Where Redis Cluster says that a slot is served: for good (MOVED), or the key that was requested
/// while its slot is on its way (ASK).
struct Redirect {
  enum class Kind : std::uint8_t { kMoved, kAsk };
  Kind kind = Kind::kMoved;
  Slot slot = 0;
  Endpoint to;  ///< An empty host: that of whoever says so.

  friend bool operator==(const Redirect&, const Redirect&) = default;
};

/// `MOVED 3999 10.0.0.7:6381`, `ASK 3999 fd00::7:6381`, `MOVED 3999 :6381`, also where `?` stands
/// for a host that the node does not know. Nothing: it is no such error, or makes no sense.
[[nodiscard]] std::optional<Redirect> ReadRedirect(std::string_view error);

}  // namespace tidegate::redis

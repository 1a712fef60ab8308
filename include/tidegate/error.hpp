// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace tidegate {

/// What kind of mistake an Error reports, for programs that branch on it.
enum class ErrorCode : std::uint8_t {
  kBadQuota,      ///< The quota cannot work; the message says why and what would.
  kBadCharge,     ///< A cost, count, identity or lease id outside its range.
  kUnsupported,   ///< The algorithm has no such operation, as a debit on `concurrency`.
  kUnknownRule,   ///< The configuration has no rule of that name.
  kTooManyRules,  ///< More rules match one request than it may be charged for.
  kExhausted,     ///< The store has no room to carry this out safely.
  kNetwork,       ///< An address could not be listened on or reached.
  kBadConfig,     ///< A configuration that cannot work; the problems beside it say why.
  kUnavailable,   ///< The call was not sent to the store, or the store rejected it: nothing was
                  ///< changed.
};

/// A mistake of the caller or a limit of the machine. A denied request is not
/// an Error: it is a Decision.
struct Error {
  ErrorCode code;
  std::string message;  ///< One sentence for the person who has to act.
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace tidegate

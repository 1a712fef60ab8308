// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/err.h>

// Helpers for source files that call OpenSSL.

namespace tidegate {

/// A deleter for std::unique_ptr that calls `Free`.
template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};

/// Removes the errors of its lifetime from this thread's OpenSSL queue, which TLS code reads too.
class ErrorMark {
 public:
  ErrorMark() noexcept { ERR_set_mark(); }
  ErrorMark(const ErrorMark&) = delete;
  ErrorMark& operator=(const ErrorMark&) = delete;
  ~ErrorMark() { ERR_pop_to_mark(); }
};

/// A passphrase callback that provides none. Without it, OpenSSL would ask on the terminal.
inline int NoPassphrase(char*, int, int, void*) noexcept { return 0; }

}  // namespace tidegate

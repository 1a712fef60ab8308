// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/server_address.hpp"
#include "net/descriptor.hpp"
#include "tidegate/clock.hpp"

namespace tidegate::cli {

/// How long a command waits, and what it says when it does so in vain.
struct Patience {
  Micros timeout = std::chrono::seconds{2};  ///< For all of an exchange.
  int cancel = -1;                 ///< A descriptor: once readable, nothing is waited for.
  std::string option = "--admin";  ///< What names another server.
};

/// When a wait is over. Polls one descriptor, restarted after signals.
class Deadline {
 public:
  explicit Deadline(const Patience& patience)
      : at_(std::chrono::steady_clock::now() + patience.timeout), cancel_(patience.cancel) {}

  /// Whether `fd` is ready for `events` (as of poll) before the time is up or cancelled.
  [[nodiscard]] bool Wait(int fd, short events) const;

 private:
  std::chrono::steady_clock::time_point at_;
  int cancel_;
};

/// A connected, non-blocking socket: each address of the name is tried in turn. The Error says what
/// to do.
[[nodiscard]] Result<net::Descriptor> Dial(const ServerAddress& address, const Patience& patience,
                                           const Deadline& deadline);

}  // namespace tidegate::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/strict_reader.hpp"

namespace tidegate::gateway_test {

/// Cases are numbered from here on: four digits each.
inline constexpr std::size_t kFirstNumber = 1000;
/// With the number of the case in the place of each `$NNN`.
[[nodiscard]] std::string Numbered(std::string text, std::size_t index);

/// Bytes to be sent on a connection of their own, and when to stop waiting for answers.
struct Exchange {
  std::string send;
  /// The value of X-Answer-To of the last answer to wait for; empty: the first answer will do.
  std::string until;
  bool after_head = false;  ///< The first answer has no body.
  std::string from = {};    ///< The loopback address that the client has; empty: any.
};

/// What a client saw.
struct Seen {
  enum class End : std::uint8_t {
    kAnswered,  ///< The last answer came.
    kClosed,    ///< The other side closed before it, or reset the connection.
    kSilent,    ///< Neither; nothing more came.
  };
  std::vector<Message> answers;  ///< Final ones that are whole.
  End end = End::kSilent;
  std::string rest;  ///< What came behind them.
  std::string why;   ///< Not empty: `rest` is no answer, and why not.
  Message last;      ///< What `rest` is, if it is a part of one.

  /// For failures.
  [[nodiscard]] std::string Text() const;
};

/// Makes all exchanges with the server on 127.0.0.1:`port`, dozens at a time, since some servers
/// wait for more bytes until they lose their patience. They are given up only when none of them has
/// moved for seconds: a slow machine is no verdict.
[[nodiscard]] std::vector<Seen> RunAll(int port, const std::vector<Exchange>& exchanges);
[[nodiscard]] Seen RunOne(int port, const Exchange& exchange);

}  // namespace tidegate::gateway_test
